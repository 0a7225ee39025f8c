// SPDX-License-Identifier: GPL-3.0-or-later
#include <QtTest>
QTEST_APPLESS_MAIN(QObject)
