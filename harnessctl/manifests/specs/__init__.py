"""Typed specs of every manifest kind: the JSON Schema that `harnessctl schema` prints is made from these types.

One kind a file. A spec holds what the author wrote, with canonical names; what the compiler makes of it is in
`harnessctl.bundle`.
"""
