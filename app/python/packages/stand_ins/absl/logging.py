# SPDX-License-Identifier: GPL-3.0-or-later
"""absl.logging: by Python's own."""
import logging as _logging

DEBUG, INFO, WARNING, ERROR, FATAL = _logging.DEBUG, _logging.INFO, _logging.WARNING, _logging.ERROR, _logging.FATAL
_logger = _logging.getLogger("absl")
debug, info, warning, warn, error, fatal, exception = (_logger.debug, _logger.info, _logger.warning, _logger.warning, _logger.error, _logger.critical,
                                                       _logger.exception)
set_verbosity = _logger.setLevel
get_verbosity = _logger.getEffectiveLevel


def log(level, message, *args):
    _logger.log(level, message, *args)


def log_first_n(level, message, n, *args):
    _logger.log(level, message, *args)
