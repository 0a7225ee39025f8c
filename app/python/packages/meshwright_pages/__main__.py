# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of a page: takes a job as JSON on standard input, and writes a line of JSON for each cell.

Job: {"cells": [{"source", "text"}..], "after": text, "readable": [path..], "writable": [path..], "confine": bool, "folder": path, "memory": bytes,
"programs": bool}. Before the first cell the
process gives up all that a page does not need (see app/python/confine.h)."""
import json
import os
import resource
import sys


def main():
    job = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")

    def tell(answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    import _meshwright as core

    from . import runner  # with all that it imports, before files are out of reach
    runner.import_all()
    null = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null, stream)
    os.chdir(job["folder"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (job["memory"], job["memory"]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (job["memory"], job["memory"]))
    if job["confine"]:
        try:
            core.confine(job["readable"], job["writable"])
        except RuntimeError as error:
            tell({"problem": {"id": getattr(error, "problem_id", ""), "message": str(error), "fix": error.fix}})
            return
    tell({"ready": True})
    page = runner.Page(job["cells"], job["after"], job["programs"])
    for number in range(len(job["cells"])):
        tell(page.run(number))
    tell({"page": page.findings()})


main()
