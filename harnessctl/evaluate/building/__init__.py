"""Building: sets of items made from the world's scenarios by a seed, each checked before it is taken [C.3, 5.6]."""
