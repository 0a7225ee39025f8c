# SPDX-License-Identifier: GPL-3.0-or-later
"""What counts as an answer to a question of a page: right ones and wrong ones of each kind."""
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P
from meshwright_pages.questions import NotRead, is_same, read, text_of

ROWS = [  # the answer, words that are it, words that are not, words that cannot be read
    (3, ["3", " 3 ", "3.0", "+3"], ["4", "3.5"], ["three", "", "3 4"]),
    (131072, ["131072", "131,072", "131_072 bytes", "128 KiB", "128kib"], ["128 KB", "131071"], ["many"]),
    (17.5, ["17.5", "17.6", "17.5 s"], ["16", "17.5 ms"], ["P('data')"]),
    (True, ["yes", "Y", "true", "Yes."], ["no"], ["maybe"]),
    ((4, 5), ["4, 5", "(4, 5)", "4 5", "[4,5]", "4x5", "4 by 5", "data=4, model=5"], ["5, 4", "4", "4, 5, 6", "-4, 5"], ["four", ""]),
    ([], ["none", "None.", "nothing", "no collective", ""], ["all-reduce over data"], ["hardly any"]),
    (["all-reduce over data"], ["all-reduce over data", "All_reduce data", "an all reduce along the data axis", "allreduce over data"],
     ["all-reduce", "all-reduce over model", "reduce-scatter over data", "none", "all-reduce over data, all-gather over data"], ["al-reduce over data", "data"]),
    (["all-gather over data", "reduce-scatter over data"],
     ["reduce-scatter over data and all-gather over data", "all-gather data; reduce_scatter data", "all-gather over data then reduce-scatter over data"],
     ["all-gather over data", "reduce-scatter over data"], []),
    (["all-to-all over model"], ["all to all over model", "alltoall model"], ["all-gather over model"], []),
    (P("data", None), ["P('data', None)", "P(\"data\")", "PartitionSpec('data',)", "P(('data',), None)", "jax.sharding.PartitionSpec('data')", "P(data)", "('data', None)"],
     ["P(None, 'data')", "P()", "P('data', 'model')", "P('nothing')"], ["P('data'", "surely not this", "P(1)", "Q('data')"]),
    (P(), ["P()", "P(None, None)"], ["P('data')"], []),
    ((P(None, "model"), P("model", None)), ["(P(None, 'model'), P('model'))", "P(None, 'model') and PartitionSpec('model', None)", "P(None, ('model',)); P(model)"],
     ["P('model'), P(None, 'model')"], ["P('model')", "P(None, 'model'), model"]),
    (np.int64(7), ["7"], ["8"], ["seven"]),
    (jnp.arange(3), ["0, 1, 2", "[0 1 2]"], ["0, 1"], ["none"]),
    (["x", "y"], ["y and x"], ["x"], []),
    ("few", ["few", "Few", "the few"], ["B"], []),
]


def judged(answer, words):
    try:
        said = read(answer, words)
    except NotRead:
        return "not read"
    return "right" if is_same(answer, said) else "not right"


def main():
    rows = [(answer, words, expected) for answer, right, others, unread in ROWS
            for expected, all_words in (("right", right + [text_of(np.asarray(answer).tolist() if hasattr(answer, "dtype") else answer)]), ("not right", others), ("not read", unread)) for words in all_words]
    wrong = [f"{answer!r}: {words!r} is {judged(answer, words)}" for answer, words, expected in rows if judged(answer, words) != expected]
    print("\n".join(wrong))
    print(f"{len(wrong)} of {len(rows)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
