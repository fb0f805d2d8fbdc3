"""FAQ search: SQLite full text without a segmenter, for any language a viewer writes in.

Two indexes over words in one width and case: trigrams, and pairs of CJK characters, since most Chinese words have two
(价格, 包邮, 退货) and a trigram index cannot see them. Words are indexed with a space on either side, so that a stem
matches only where a word begins (` tab` is not in `portable`) and short words (` xl `) are seen too; a single CJK
character is looked for by LIKE. Viewer text is only ever bound as a value, and every term is a quoted phrase, so that
FTS5 syntax in it is data.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harnessctl.errors import ToolError
from harnessctl.manifests.specs.world import Faq
from harnessctl.simulate.tables import TableData, Value

#: What is read of a query, which may be 100 KB of viewer text.
MAX_QUERY_CHARS = 400
MAX_TERMS = 64
#: Answers that score less than this part of the best one are left out: a long tail only misleads a model.
TAIL = 0.3
#: How many rows of one index are looked at before the scores of all are added up.
CANDIDATES = 200
#: A match in the question counts this much more than one in the answer.
QUESTION_WEIGHT = 3.0

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_IS_CJK = re.compile(rf"[{_CJK}]")
_STOP = frozenset(
    re.findall(
        r"\w+",
        "a about all am an and any are as at be been but by can could did do does for from get give got had has have her "
        "his how i if in into is it its just let ll long m me more much my no not now of off on one or our out please re "
        "s shall she should so some t tell that the their them then there these they this those to too up us ve very "
        "want was we were what when where which who why will with would you your",
    )
)
_STOP_CJK = frozenset(
    re.findall(r"\w+", "这个 那个 可以 怎么 什么 请问 有没 没有 我想 想问 一下 你们 我们 的吗 了吗 是不 不是 多少")
)


def words(text: str) -> list[str]:
    """The words and CJK runs of `text`, in one width and case."""
    return _RUN.findall(unicodedata.normalize("NFKC", text).casefold())


def spaced(runs: list[str]) -> str:
    """Words as the trigram index reads them: a space before, between and after."""
    return f" {' '.join(runs)} "


def pairs(runs: list[str]) -> str:
    """The CJK character pairs of the runs, separated by spaces."""
    return " ".join(run[i : i + 2] for run in runs if _IS_CJK.match(run) for i in range(len(run) - 1))


def index_faq(db: sqlite3.Connection, faq: Faq, table: TableData) -> None:
    """Build both indexes and the folded text for `table`, whose rows stand in `db` with rowids from 1."""
    db.execute("CREATE TABLE _faq_text (id INTEGER PRIMARY KEY, question TEXT, answer TEXT)")
    db.execute("CREATE VIRTUAL TABLE _faq_trigram USING fts5(question, answer, content='', tokenize='trigram')")
    db.execute("CREATE VIRTUAL TABLE _faq_pair USING fts5(question, answer, content='', tokenize='unicode61')")
    at = table.names.index(faq.question), table.names.index(faq.answer)
    texts = [(n, *(words(str(row[i] or "")) for i in at)) for n, row in enumerate(table.rows, 1)]
    plain = [(n, spaced(question), spaced(answer)) for n, question, answer in texts]
    db.executemany("INSERT INTO _faq_text VALUES (?, ?, ?)", plain)
    db.executemany("INSERT INTO _faq_trigram (rowid, question, answer) VALUES (?, ?, ?)", plain)
    db.executemany(
        "INSERT INTO _faq_pair (rowid, question, answer) VALUES (?, ?, ?)",
        [(n, pairs(question), pairs(answer)) for n, question, answer in texts],
    )


class FaqSearch:
    """Search over one FAQ table. `columns` are the table's, in order."""

    def __init__(self, faq: Faq, columns: Sequence[str]) -> None:
        self._faq = faq
        self._columns = list(columns)

    def __call__(
        self, db: sqlite3.Connection, query: str, where: Mapping[str, Any], top_k: int
    ) -> list[tuple[list[Value], float]]:
        """(row, score) of the best answers, best first; none when the query has no word to look for.

        `where` narrows by filter columns: a value or a list of values; a row whose cell is empty holds for all, and a
        null value does not narrow. ToolError for a column that is not a filter.
        """
        narrowing, values = self._narrowing(where)
        scores: dict[int, float] = {}
        for sql, params in _rankings(query, f'JOIN "{self._faq.table}" AS f ON f.rowid = m.rowid', narrowing):
            for row in db.execute(sql, [*params, *values, CANDIDATES]):
                scores[row[0]] = scores.get(row[0], 0.0) + row[1]
        best = sorted(scores, key=lambda row: (-scores[row], row))[: max(0, top_k)]
        names = ", ".join(f'"{name}"' for name in self._columns)
        return [
            (
                list(db.execute(f'SELECT {names} FROM "{self._faq.table}" WHERE rowid = ?', [row]).fetchone()),
                scores[row],
            )
            for row in best
            if scores[row] >= TAIL * scores[best[0]]
        ]

    def _narrowing(self, where: Mapping[str, Any]) -> tuple[str, list[Any]]:
        conditions: list[str] = []
        values: list[Any] = []
        for column, wanted in where.items():
            if column not in self._faq.filter:
                raise ToolError(
                    f"the FAQ cannot be narrowed by `{column}`", hint=f"filters: {', '.join(self._faq.filter)}"
                )
            if wanted is None:
                continue
            options = wanted if isinstance(wanted, list) else [wanted]
            marks = ", ".join("?" * len(options))
            conditions.append(f'(f."{column}" IS NULL OR f."{column}" IN ({marks}))')
            values.extend(options)
        return "".join(f" AND {condition}" for condition in conditions), values


def _rankings(query: str, join: str, narrowing: str) -> Iterator[tuple[str, list[Any]]]:
    """SELECTs of (rowid, score) with their parameters, one for each index that can see a part of the query."""
    trigrams, twos, shorts = _terms(words(query[:MAX_QUERY_CHARS]))
    for index, terms in (("_faq_trigram", trigrams), ("_faq_pair", twos)):
        if terms:
            score = f"-bm25({index}, {QUESTION_WEIGHT}, 1.0)"
            yield (
                f"SELECT m.rowid, {score} FROM {index} AS m {join} WHERE {index} MATCH ?{narrowing} ORDER BY {score} DESC LIMIT ?",
                [" OR ".join('"' + term.replace('"', '""') + '"' for term in terms)],
            )
    found = "m.question LIKE ?", "m.answer LIKE ?"
    score = f"({found[0]}) * {QUESTION_WEIGHT} + ({found[1]})"
    for term in shorts:
        yield (
            f"SELECT m.rowid, {score} AS score FROM _faq_text AS m {join} WHERE ({found[0]} OR {found[1]}){narrowing} "
            "ORDER BY score DESC LIMIT ?",
            [f"%{term}%"] * 4,
        )


def _terms(runs: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Terms for the trigram index, CJK pairs, and single CJK characters; each once."""
    trigrams: dict[str, None] = {}
    twos: dict[str, None] = {}
    singles: dict[str, None] = {}
    for run in runs:
        if not _IS_CJK.match(run):
            if run not in _STOP:
                # The stem finds every form of the word, the whole word puts its own form first.
                trigrams |= {f" {_stem(run)}": None, f" {run} ": None} if len(run) > 2 else {f" {run} ": None}
        elif len(run) == 1:
            singles[run] = None
        else:
            found = [run[i : i + 2] for i in range(len(run) - 1)]
            twos.update(dict.fromkeys([pair for pair in found if pair not in _STOP_CJK] or found))
            trigrams.update(dict.fromkeys(run[i : i + 3] for i in range(len(run) - 2)))
    return list(trigrams)[:MAX_TERMS], list(twos)[:MAX_TERMS], [] if trigrams or twos else list(singles)[:4]


def _stem(word: str) -> str:
    """An English word without its commonest endings; matching is by substring, so that a stem finds all its forms."""
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiousl" else word
    return word
