# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the cells of a page."""
