"""Meaning words: the words that carry negation, modality, bounds, order and number, by class.

What always holds: members of one class may stand for each other in a paraphrase; a phrase is taken before the words in
it (`no more than` is a bound and no negation), and an idiom with an empty class counts as nothing (`at all`, 特别).
"""

from __future__ import annotations

from typing import NamedTuple

from harnessctl.augment.phrases import PhraseTable


class Sense(NamedTuple):
    """What a phrase counts as. `post`: what it governs stands before it (之前)."""

    classes: tuple[str, ...] = ()
    number: str | None = None
    post: bool = False


#: Classes whose scope is checked: the references that they govern stay the same.
SCOPED = frozenset({"not", "never", "without", "before", "after", "until", "unless", "instead", "then", "except"})
#: Classes that bound the number beside them.
BOUNDS = frozenset({"at most", "at least", "under", "over", "within", "about", "exactly"})
#: Bounds that are only words where no number stands beside them: `under their account`, `above`.
BOUNDS_OF_NUMBERS = frozenset({"under", "over", "within", "about", "exactly"})

_CLASSES: dict[str, str] = {
    # negation
    "not": "not | no | none | nothing | nobody | no one | nowhere | neither | nor | avoid | avoids | avoiding | refrain"
    " | refrains | refraining | 不 | 没 | 没有 | 未 | 别 | 勿 | 无 | 非 | 莫 | 毋 | 不要 | 请勿"
    " | 切勿 | 切莫 | 切不可 | 请不要 | 请别 | 并非 | 不是 | 避免 | 不会 | 否",
    "never": "never | at no time | under no circumstances | in no case | on no account | 从不 | 绝不 | 决不 | 永不 | 从未 | 从来不 | 永远不 | 绝不要 | 千万不要 | 千万别",
    "without": "without | 而不 | 不带",
    "except": "except | except for | but for | other than | apart from | aside from | with the exception of"
    " | 除了 | 除",
    "only": "only | solely | exclusively | alone | 只 | 仅 | 仅仅 | 只有 | 唯有 | 唯一 | 仅限 | 只限",
    "forbid": "forbid | forbids | forbidden | prohibit | prohibits | prohibited | ban | bans | banned | disallow"
    " | disallowed | 禁止 | 严禁 | 不准 | 不许",
    "refuse": "refuse | refuses | refusing | refused | decline | declines | reject | rejects | rejected | 拒绝",
    # modality
    "must": "must | have to | has to | need | needs | needed | need to | needs to | require | requires | required"
    " | necessary | mandatory | obliged to | obligatory | shall | 必须 | 务必 | 需要 | 需 | 须 | 必需 | 一定要",
    "should": "should | ought to | 应 | 应该 | 应当 | 理应",
    "may": "may | can | could | might | allowed to | permitted to | able to | possible | 可以 | 可 | 能 | 能够 | 允许 | 得以",
    "must not": "needless | unnecessary",
    # bounds
    "at most": "at most | at the most | no more than | not more than | up to | a maximum of | maximum | or fewer | or less"
    " | not exceed | not exceeding | 最多 | 至多 | 不超过 | 不得超过 | 不能超过 | 不要超过 | 以内 | 之内 | 上限",
    "at least": "at least | at the least | no fewer than | no less than | not less than | not fewer than | a minimum of"
    " | minimum | or more | 至少 | 最少 | 不少于 | 不低于 | 起码 | 以上",
    "under": "under | below | less than | fewer than | 低于 | 少于 | 不足 | 小于 | 不到 | 以下",
    "over": "over | above | more than | exceed | exceeds | exceeding | beyond | 超过 | 高于 | 多于 | 大于 | 超出",
    "within": "within",
    "about": "about | around | approximately | roughly | nearly | almost | 大约 | 大概 | 约 | 左右 | 将近",
    "exactly": "exactly | precisely | 正好 | 恰好",
    # quantifiers
    "always": "always | at all times | every time | in every case | in all cases | invariably | 总是 | 始终 | 一律 | 每次"
    " | 永远",
    "all": "all | each | every | everything | everybody | everyone | 所有 | 全部 | 一切 | 每 | 各 | 每个 | 全都 | 凡",
    "any": "any | anything | anybody | anyone | whatever | whichever | 任何 | 任意 | 任一",
    "both": "both | 两者",
    "either": "either",
    # condition
    "if": "if | when | whenever | in case | provided that | provided there | as long as | 如果 | 若 | 假如 | 倘若 | 要是 | 假若"
    " | 一旦 | 万一 | 只要 | 如 | 若是 | 如若",
    "unless": "unless | 除非",
    "otherwise": "otherwise | or else | failing that | 否则 | 不然",
    "instead": "instead | rather than | in place of | 而不是 | 代替",
    # order
    "before": "before | prior to | ahead of | beforehand",
    "after": "after | afterwards | afterward | thereafter",
    "first": "first | firstly | first of all | before anything else | before all else | before everything else"
    " | to begin with | to start with | in the first place | 先 | 首先 | 第一",
    "then": "then | 再 | 然后 | 接着 | 随后",
    "until": "until | till | 直到",
}  # fmt: skip

_POST: dict[str, str] = {
    "before": "之前 | 以前 | 前",
    "after": "之后 | 以后 | 后",
    "if": "时 | 的时候",
}

_TWO: dict[str, tuple[str, ...]] = {
    "cannot": ("may", "not"),
    "can not": ("may", "not"),
    "impossible": ("may", "not"),
    "unable to": ("may", "not"),
    "不能": ("may", "not"),
    "不可": ("may", "not"),
    "不可以": ("may", "not"),
    "不得": ("may", "not"),
    "无法": ("may", "not"),
    "不必": ("must", "not"),
    "无需": ("must", "not"),
    "无须": ("must", "not"),
    "不需要": ("must", "not"),
    "不用": ("must", "not"),
    "ought not to": ("should", "not"),
    "不应": ("should", "not"),
    "不应该": ("should", "not"),
    "不应当": ("should", "not"),
    "只能": ("may", "only"),
    "只可": ("may", "only"),
    "必不可少": ("must",),
    "不得不": ("must",),
    "不能不": ("must",),
    "nothing but": ("only",),
    "everything but": ("all", "except"),
}

#: Phrases that hold such a word and mean nothing of it.
_IDIOMS = (
    "at all | after all | above all | all right | all over | no doubt | no longer than necessary | one another"
    " | each other | another one | this one | that one | which one | other one | ones | not only | no matter | even if | even when | even though"
    " | as well as possible | as soon as possible | as if | if any | what if | over there | once more | once again"
    " | every now and then | now and then | at once | all at once | at first sight"
    " | in case of | in the case of | in this case | in that case | up to now | up to you | up to date | has to do with | have to do with | ahead of time"
    " | all told | in any event | in any case | in all honesty | all of a sudden"
    " | 不过 | 不仅 | 不但 | 不断 | 不同 | 非常 | 别的 | 别人 | 特别 | 分别 | 区别 | 级别 | 类别 | 性别 | 个别 | 识别 | 未来 | 无论 | 不管"
    " | 无线 | 差不多 | 不错 | 要不要 | 能不能 | 可不可以 | 可不可 | 是不是 | 会不会 | 该不该 | 有没有 | 需不需要 | 行不行 | 好不好 | 对不对"
    " | 不得而知 | 不得已 | 怪不得 | 舍不得 | 巴不得 | 是否 | 能否 | 可否 | 不久 | 可是 | 可爱 | 可能 | 可靠 | 功能 | 智能 | 性能 | 节能 | 能力 | 能量 | 供应 | 反应 | 适应"
    " | 应用 | 响应 | 对应 | 效应 | 需求 | 当前 | 目前 | 前面 | 前台 | 提前 | 前往 | 前提 | 以前的 | 售后 | 最后 | 后面 | 后台 | 后续 | 今后 | 背后"
    " | 后果 | 优先 | 先生 | 再见 | 时间 | 同时 | 小时 | 及时 | 按时 | 准时 | 实时 | 随时 | 平时 | 时长 | 时尚 | 时段 | 时刻 | 暂时 | 临时 | 各种 | 各位"
    " | 一下 | 一起 | 一定 | 一样 | 一直 | 一些 | 一般 | 统一 | 一点 | 一致 | 一边 | 一向 | 之一 | 十分 | 万能 | 千万 | 如何 | 例如 | 比如 | 如下"
    " | 回应 | 应对 | 应付 | 应答 | 答应 | 相应 | 须知 | 必须品 | 如此 | 譬如 | 假如说 | 无人机 | 非遗 | 高度 | 每天都"
)

_NUMBERS: dict[str, str] = {
    "0": "zero | 零 | 〇",
    "1": "one | single | 一",
    "2": "two | 二 | 两",
    "3": "three | 三",
    "4": "four | 四",
    "5": "five | 五",
    "6": "six | 六",
    "7": "seven | 七",
    "8": "eight | 八",
    "9": "nine | 九",
    "10": "ten | 十",
    "11": "eleven",
    "12": "twelve | dozen",
    "13": "thirteen",
    "14": "fourteen",
    "15": "fifteen",
    "16": "sixteen",
    "17": "seventeen",
    "18": "eighteen",
    "19": "nineteen",
    "20": "twenty",
    "30": "thirty",
    "40": "forty",
    "50": "fifty",
    "60": "sixty",
    "70": "seventy",
    "80": "eighty",
    "90": "ninety",
    "100": "hundred | 百",
    "1000": "thousand | 千",
    "10000": "万",
    "1000000": "million",
    "100000000": "亿",
    "1000000000": "billion",
    "1/2": "half | 半",
    "1/4": "quarter",
    "2.": "second | 2nd | 第二",
    "3.": "third | 3rd | 第三",
    "4.": "fourth | 第四",
    "5.": "fifth | 第五",
    "1x": "once | one time | a single time | 一次",
    "2x": "twice | two times | 两次",
    "2*": "double | doubled",
}

_UNITS: dict[str, str] = {
    "%": "% | percent | per cent | 个百分点",
    "CNY": "yuan | rmb | cny | 元 | 块 | 块钱 | 人民币",
    "USD": "dollar | dollars | usd | 美元 | 美金",
    "EUR": "euro | euros | eur | € | 欧元",
    "ms": "ms | millisecond | milliseconds | 毫秒",
    "s": "s | sec | second | seconds | 秒 | 秒钟",
    "min": "min | mins | minute | minutes | 分钟",
    "h": "h | hr | hrs | hour | hours | 小时 | 个小时",
    "d": "day | days | 天 | 日",
    "wd": "business day | business days | working day | working days | 个工作日",
    "w": "week | weeks | 周 | 个星期",
    "mo": "month | months | 个月",
    "y": "year | years | 年",
    "char": "character | characters | char | chars | 字 | 个字 | 个字符 | 字符",
    "word": "word | words | 个词",
    "token": "token | tokens",
    "sentence": "sentence | sentences | 句 | 句话",
    "kg": "kg | kilogram | kilograms | 公斤 | 千克",
    "g": "g | gram | grams | 克",
    "mg": "mg | milligram | milligrams | 毫克",
    "ml": "ml | millilitre | millilitres | milliliter | milliliters | 毫升",
    "l": "l | litre | litres | liter | liters | 升",
    "mm": "mm | millimetre | millimetres | millimeter | millimeters | 毫米",
    "cm": "cm | centimetre | centimetres | centimeter | centimeters | 厘米",
    "m": "m | metre | metres | meter | meters | 米",
    "km": "km | kilometre | kilometres | kilometer | kilometers | 公里",
    "C": "°c | ℃ | 度",
}


def _split(phrases: str) -> list[str]:
    return [phrase.strip() for phrase in phrases.split("|")]


def _senses() -> PhraseTable[Sense]:
    senses: dict[str, Sense] = {phrase: Sense() for phrase in _split(_IDIOMS)}
    senses |= {phrase: Sense((name,)) for name, members in _CLASSES.items() for phrase in _split(members)}
    senses |= {phrase: Sense((name,), post=True) for name, members in _POST.items() for phrase in _split(members)}
    senses |= {phrase: Sense(names) for phrase, names in _TWO.items()}
    senses |= {phrase: Sense(number=value) for value, members in _NUMBERS.items() for phrase in _split(members)}
    return PhraseTable(senses.items())


#: Idioms, which a lexicon leaves whole too.
IDIOMS = tuple(_split(_IDIOMS))
SENSES = _senses()
UNITS = PhraseTable([(phrase, unit) for unit, members in _UNITS.items() for phrase in _split(members)])
#: Currency signs that stand before their number.
SIGNS = {"¥": "CNY", "￥": "CNY", "$": "USD", "€": "EUR"}
