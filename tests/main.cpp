// SPDX-License-Identifier: GPL-3.0-or-later
//
// The program of a folder's tests: `tests_core_schedule tst_schedule [arguments of Qt Test]` runs one class, in a process of its own.
#include "core/support/host_memory.h"
#include "tests/test_class.h"

#ifdef MESHWRIGHT_UI_TESTS
#include <QApplication>
#endif

#include <cstdio>

namespace meshwright::tests {

std::map<std::string, RunClass>& testClasses()
{
    static std::map<std::string, RunClass> classes;
    return classes;
}

bool addTestClass(const std::string& file, RunClass run)
{
    testClasses().emplace(file.substr(0, file.rfind('.')), run);
    return true;
}

} // namespace meshwright::tests

int main(int argc, char** argv)
{
    meshwright::growHeapInLargeSteps();
    const auto& classes = meshwright::tests::testClasses();
    const auto found = argc > 1 ? classes.find(argv[1]) : classes.end();
    if (found == classes.end()) {
        std::fprintf(stderr, "name one of these classes of tests:\n");
        for (const auto& [name, run] : classes)
            std::fprintf(stderr, "  %s\n", name.c_str());
        return 2;
    }
#ifdef MESHWRIGHT_UI_TESTS
    const QApplication application(argc, argv);
#else
    const QCoreApplication application(argc, argv);
#endif
    return found->second(argc - 1, argv + 1);
}
