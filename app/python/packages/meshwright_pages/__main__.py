# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of a page: takes a job as a line of JSON on standard input, then commands, a line each, and answers each with a line of JSON.

Job: {"cells": [{"source", "text", "printed"?, "question"?}..], "after": text, "readable": [path..], "writable": [path..], "confine": bool, "folder": path,
"memory": bytes}. Commands: {"run": number}, {"change": number, "source": text} before it, {"judge": number, "answer": text} for a cell that is a
question, {"findings": true} at the end.
Before the first cell the process gives up all that a page does not need (see app/python/confine.h)."""
import sys

if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the folder that the program was started in, which is not the page's

import json
import os
import resource
import tempfile


def main():
    job = json.loads(sys.stdin.readline())
    commands = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")

    def tell(answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    import _meshwright as core

    from . import runner, temporary  # with all that it imports, before files are out of reach
    runner.import_all()
    null = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null, stream)
    os.chdir(job["folder"])
    sys.path.insert(0, job["folder"])  # modules beside the page
    core.keep_freed_memory(job["memory"] // 4)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (job["memory"], job["memory"]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (job["memory"], job["memory"]))
    if job["confine"]:
        try:
            core.confine(job["readable"], job["writable"])
        except RuntimeError as error:
            tell({"problem": {"id": getattr(error, "problem_id", ""), "message": str(error), "fix": error.fix}})
            return
        temporary.make_own(tempfile.gettempdir(), job["readable"] + job["writable"])
    tell({"ready": True})
    page = runner.Page(job["cells"], job["after"])
    for line in commands:
        command = json.loads(line)
        if "run" in command:
            tell(page.run(command["run"]))
        elif "change" in command:
            page.change(command["change"], command["source"])
            tell({"changed": True})
        elif "judge" in command:
            tell(page.judge(command["judge"], command["answer"]))
        else:
            tell({"page": page.findings()})


main()
