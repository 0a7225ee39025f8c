# SPDX-License-Identifier: GPL-3.0-or-later
"""absl.app: calls the main function of a page, which ends no process."""
import sys


class UsageError(Exception):
    pass


def run(main, argv=None, flags_parser=None):
    code = main(list(argv or sys.argv[:1]))
    if code:
        sys.exit(code)
