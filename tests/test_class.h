// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QtTest>

#include <map>
#include <string>

namespace meshwright::tests {

/// Runs a test class with the arguments of Qt Test; returns the number of failures.
using RunClass = int (*)(int argc, char** argv);

/// The classes of this program by name: that of the file without its ending (`tst_schedule`).
std::map<std::string, RunClass>& testClasses();

/// Adds the class of a file; returns true.
bool addTestClass(const std::string& file, RunClass run);

} // namespace meshwright::tests

/// Makes a class of tests known to the program of its folder (see main.cpp), by the name of the file that says so.
#define MESHWRIGHT_TEST(Class)                                                                                                   \
    MESHWRIGHT_TEST_RUN(Class, [](int argc, char** argv) {                                                                       \
        Class test;                                                                                                              \
        return QTest::qExec(&test, argc, argv);                                                                                  \
    })

/// The same for a function that does more than that.
#define MESHWRIGHT_TEST_RUN(Class, run)                                                                                          \
    [[maybe_unused]] static const bool isKnown##Class = meshwright::tests::addTestClass(__FILE_NAME__, run);
