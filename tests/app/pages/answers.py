# SPDX-License-Identifier: GPL-3.0-or-later
"""What counts as an answer to a question of a page: right ones and wrong ones of each kind."""
from jax.sharding import PartitionSpec as P
from meshwright_pages.questions import is_same, text_of

ROWS = [  # the answer, words that are it, words that are not
    (3, ["3", " 3 ", "3.0", "+3"], ["4", "three", "", "3 4"]),
    (131072, ["131072", "131,072", "131_072 bytes", "128 KiB", "128kib"], ["128 KB", "131071"]),
    (17.5, ["17.5", "17.6", "17.5 s"], ["16", "17.5 ms"]),
    (True, ["yes", "Y", "true"], ["no", "maybe"]),
    ((4, 5), ["4, 5", "(4, 5)", "4 5", "[4,5]"], ["5, 4", "4", "4, 5, 6"]),
    ([], ["none", "None.", "nothing", "no collective", ""], ["all-reduce over data"]),
    (["all-reduce over data"], ["all-reduce over data", "All_reduce data", "an all reduce along the data axis", "allreduce over data"],
     ["all-reduce", "all-reduce over model", "reduce-scatter over data", "none", "all-reduce over data, all-gather over data"]),
    (["all-gather over data", "reduce-scatter over data"],
     ["reduce-scatter over data and all-gather over data", "all-gather data; reduce_scatter data", "all-gather over data then reduce-scatter over data"],
     ["all-gather over data", "reduce-scatter over data"]),
    (["all-to-all over model"], ["all to all over model", "alltoall model"], ["all-gather over model"]),
    (P("data", None), ["P('data', None)", "P(\"data\")", "PartitionSpec('data',)", "P(('data',), None)"], ["P(None, 'data')", "P()", "P('data', 'model')"]),
    (P(), ["P()", "P(None, None)"], ["P('data')"]),
    ("few", ["few", "Few", "the few"], ["B"]),
]


def main():
    wrong = [f"{answer!r}: {words!r} is {'not ' if should else ''}taken" for answer, right, others in ROWS
             for words, should in [(w, True) for w in right + [text_of(answer)]] + [(w, False) for w in others]
             if bool(is_same(answer, words)) != should]
    print("\n".join(wrong))
    print(f"{len(wrong)} of {sum(len(right) + 1 + len(others) for _, right, others in ROWS)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
