# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of a page: takes a job as JSON on standard input, and writes a line of JSON for each cell.

Job: {"cells": [source..], "readable": [path..], "writable": [path..], "confine": bool}. Before the first cell the process gives up all that a
page does not need (see app/python/confine.h)."""
import json
import os
import sys


def main():
    job = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    import _meshwright as core

    from . import runner  # with all that it imports, before files are out of reach
    null = os.open("/dev/null", os.O_RDWR)
    if job.get("confine", True):
        core.confine(job["readable"], job["writable"])
    for stream in (0, 1):
        os.dup2(null, stream)

    def tell(answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    tell({"ready": True})
    page = runner.Page()
    for index, source in enumerate(job["cells"]):
        tell(dict(page.run(source), index=index))


main()
