// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/test_class.h"

#include <QProcess>
#include <QRegularExpression>
#include <QStandardPaths>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tst_layering {

namespace fs = std::filesystem;

/// The house's rules, read off the sources: who may include whom, what opens a file, what every folder says of itself.
class TestLayering : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void tableIsWellFormed();
    void foldersIncludeWhatTheyMay();
    void tableAllowsOnlyWhatIsUsed();
    void noQtBelowTheDesktop();
    void heavyHeadersStayInside();
    void everyFolderSaysItsJob();
    void everySourceNamesTheLicence();
    void everySourceIsFormatted();
};

namespace {

/// What each folder may use besides itself and the standard library; what those use, it may use too. The order is that of the layers.
const std::vector<std::pair<std::string, std::set<std::string>>> kMayUse = {
    {"core/support", {}},
    {"core/ranks", {"core/support"}},
    {"core/timeline", {}},
    {"core/mesh", {"core/support"}},
    {"core/sharding", {"core/mesh"}},
    {"core/draw", {"core/sharding", "core/timeline"}},
    {"core/program", {"core/sharding"}},
    {"core/text", {"core/program"}},
    {"core/hlo", {"core/text"}},
    {"core/autodiff", {"core/program"}},
    {"core/models", {"core/autodiff"}},
    {"core/study", {"core/models", "core/text"}},
    {"core/propagate", {"core/program"}},
    {"core/reshard", {"core/propagate"}},
    {"core/partition", {"core/reshard"}},
    {"core/schedule", {"core/partition", "core/timeline"}},
    {"core/prove", {"core/schedule"}},
    {"core/kernels", {"core/program"}},
    {"core/devices", {"core/kernels", "core/partition", "core/ranks"}},
    {"core/runtime", {"core/devices", "core/schedule"}},
    {"core/checkpoint", {"core/kernels"}},
    {"core/train", {"core/checkpoint", "core/models", "core/prove", "core/runtime"}},
    {"core/diagnose", {"core/partition", "core/study"}},
    {"sim/hardware", {"core/study"}},
    {"sim/pages", {"sim/hardware"}},
    {"sim/collective", {"sim/hardware", "core/reshard"}},
    {"sim/network", {"sim/collective"}},
    {"sim/cost", {"sim/hardware"}},
    {"sim/simulate", {"sim/network", "sim/cost", "core/schedule"}},
    {"sim/chakra", {"sim/simulate"}},
    {"sim/calibrate", {"sim/simulate", "core/runtime", "core/text"}},
    {"sim/transformer", {"sim/collective", "sim/cost", "core/schedule"}},
    {"sim/validate", {"sim/transformer"}},
    {"sim/search", {"sim/transformer", "sim/simulate"}},
    {"sim/sweep", {"core/ranks", "core/study"}},
    {"sim/compare", {"sim/simulate", "core/draw"}},
    {"sim/report", {"core/hlo", "sim/sweep", "sim/compare", "sim/chakra", "core/train"}},
    {"sim/plan", {"sim/report", "sim/search"}},
    {"sim/session", {"sim/plan", "sim/validate", "core/diagnose", "core/text"}},
    {"ui/theme", {"core/draw"}},
    {"ui/widgets", {"ui/theme", "sim/session"}},
    {"ui/models", {"sim/session"}},
    {"ui/jobs", {"sim/session"}},
    {"ui/study", {"ui/theme", "ui/models"}},
    {"ui/mesh", {"ui/widgets", "ui/models"}},
    {"ui/layout", {"ui/widgets", "ui/models"}},
    {"ui/timeline", {"ui/widgets", "ui/jobs"}},
    {"ui/collectives", {"ui/widgets", "ui/models"}},
    {"ui/memory", {"ui/widgets", "ui/models"}},
    {"ui/training", {"ui/widgets", "ui/jobs"}},
    {"ui/report", {"ui/widgets", "ui/jobs"}},
    {"ui/search", {"ui/widgets", "ui/jobs"}},
    {"ui/shapes", {"ui/widgets", "ui/jobs"}},
    {"ui/explain", {"ui/widgets", "ui/jobs", "core/diagnose", "sim/report"}},
    {"ui/pages", {"ui/widgets", "ui/jobs", "ui/models", "sim/pages"}},
    {"ui/program", {"ui/widgets", "ui/jobs", "ui/study"}},
    {"ui/window",
        {"ui/program", "ui/study", "ui/mesh", "ui/layout", "ui/collectives", "ui/timeline", "ui/memory", "ui/training",
            "ui/report", "ui/search", "ui/shapes", "ui/explain", "ui/pages"}},
    {"app/python", {"core/diagnose", "core/runtime", "sim/simulate"}},
    {"app/terminal", {"core/diagnose", "core/text", "sim/report"}},
    {"app/verbs", {"sim/pages", "app/terminal", "sim/session", "sim/validate", "sim/calibrate"}},
    {"app/cli", {"app/verbs"}},
    {"app/gui", {"ui/window"}},
};

/// Qt's own headers, and what draws with it.
bool isQt(const std::string& include)
{
    static const QRegularExpression kQt(R"(^<(Q[A-Z]\w*|q[a-z]+\.h|Qt\w+(/\w+)?|qcustomplot\.h)>$)");
    return kQt.match(QString::fromStdString(include)).hasMatch();
}

/// Headers that are costly to compile: only in sources, never in headers of ours.
const std::vector<std::string> kHeavy = {"nlohmann/", "yaml-cpp/", "boost/graph/", "Eigen/", "CLI/", "toml++/"};
const std::string kDeclaresOnly = "<nlohmann/json_fwd.hpp>";

fs::path root()
{
    return MESHWRIGHT_SOURCE_DIR;
}

struct Source {
    std::string path; ///< from the root
    std::string folder; ///< the first two parts of the path
    std::vector<std::string> includes; ///< with their quotes or brackets
    std::string firstLine;
};

const std::vector<Source>& sources()
{
    static const std::vector<Source> all = [] {
        static const QRegularExpression kInclude(R"re(^\s*#\s*include\s*(["<][^">]+[">]))re");
        std::vector<Source> found;
        for (const char* top : {"app", "core", "sim", "ui", "tests"}) {
            if (!fs::exists(root() / top))
                continue;
            for (const auto& entry : fs::recursive_directory_iterator(root() / top)) {
                const auto extension = entry.path().extension();
                if (!entry.is_regular_file() || (extension != ".h" && extension != ".cpp"))
                    continue;
                Source source;
                const fs::path relative = entry.path().lexically_relative(root());
                source.path = relative.generic_string();
                auto part = relative.begin();
                source.folder = part->string() + "/" + std::next(part)->string();
                std::ifstream in(entry.path());
                for (std::string line; std::getline(in, line);) {
                    if (source.firstLine.empty())
                        source.firstLine = line;
                    const auto match = kInclude.match(QString::fromStdString(line));
                    if (match.hasMatch())
                        source.includes.push_back(match.captured(1).toStdString());
                }
                found.push_back(std::move(source));
            }
        }
        std::sort(found.begin(), found.end(), [](const Source& a, const Source& b) { return a.path < b.path; });
        return found;
    }();
    return all;
}

/// Everything that a folder may use, directly or not; itself included.
std::set<std::string> reachable(const std::string& folder)
{
    std::set<std::string> all = {folder};
    for (auto row = kMayUse.rbegin(); row != kMayUse.rend(); ++row) {
        if (all.contains(row->first))
            all.insert(row->second.begin(), row->second.end());
    }
    return all;
}

bool isIn(const Source& source, const std::string& top)
{
    return source.path.starts_with(top + "/");
}

} // namespace

void TestLayering::tableIsWellFormed()
{
    // Every folder uses only folders above it in the table: no circles, and one pass upwards finds all.
    std::set<std::string> known;
    for (const auto& [folder, uses] : kMayUse) {
        for (const std::string& used : uses)
            QVERIFY2(known.contains(used), (folder + " uses " + used).c_str());
        known.insert(folder);
    }
    QVERIFY(reachable("core/draw").contains("core/mesh"));
    QVERIFY(!reachable("core/propagate").contains("core/text"));
    QVERIFY(sources().size() > 20);
}

void TestLayering::foldersIncludeWhatTheyMay()
{
    QStringList wrong;
    std::set<std::string> known;
    for (const auto& row : kMayUse)
        known.insert(row.first);
    for (const Source& source : sources()) {
        if (!isIn(source, "core") && !isIn(source, "sim") && (!isIn(source, "app") || source.folder == "app/gui"))
            continue;
        if (!known.contains(source.folder))
            wrong << QString("%1: the folder is not in the table").arg(source.path.c_str());
        const std::set<std::string> may = reachable(source.folder);
        for (const std::string& include : source.includes) {
            if (include.front() != '"')
                continue;
            const fs::path target = include.substr(1, include.size() - 2);
            const auto parts = static_cast<std::size_t>(std::distance(target.begin(), target.end()));
            const std::string folder
                = parts >= 3 ? target.begin()->string() + "/" + std::next(target.begin())->string() : std::string();
            if (folder.empty() || !fs::exists(root() / target))
                wrong << QString("%1 includes %2: write the full path from the root").arg(source.path.c_str(), include.c_str());
            else if (!may.contains(folder))
                wrong << QString("%1 includes %2").arg(source.path.c_str(), include.c_str());
        }
    }
    QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

void TestLayering::tableAllowsOnlyWhatIsUsed()
{
    std::map<std::string, std::set<std::string>> included;
    for (const Source& source : sources()) {
        for (const std::string& include : source.includes) {
            const fs::path target = include.substr(1, include.size() - 2);
            if (include.front() == '"' && std::distance(target.begin(), target.end()) >= 3)
                included[source.folder].insert(target.begin()->string() + "/" + std::next(target.begin())->string());
        }
    }
    QStringList unused;
    for (const auto& [folder, uses] : kMayUse) {
        for (const std::string& used : uses) {
            if (!included[folder].contains(used))
                unused << QString("%1 does not include anything of %2").arg(folder.c_str(), used.c_str());
        }
    }
    QVERIFY2(unused.isEmpty(), qPrintable("\n" + unused.join('\n')));
}

void TestLayering::noQtBelowTheDesktop()
{
    QStringList wrong;
    for (const Source& source : sources()) {
        if (!isIn(source, "core") && !isIn(source, "sim") && (!isIn(source, "app") || source.folder == "app/gui"))
            continue;
        for (const std::string& include : source.includes) {
            if (isQt(include) || include.starts_with("\"ui/"))
                wrong << QString("%1 includes %2").arg(source.path.c_str(), include.c_str());
        }
    }
    QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
    QVERIFY(isQt("<QString>") && isQt("<QtTest>") && isQt("<QtCore/QObject>") && isQt("<qglobal.h>") && !isQt("<queue>"));
}

void TestLayering::heavyHeadersStayInside()
{
    QStringList wrong;
    for (const Source& source : sources()) {
        if (isIn(source, "tests") || !source.path.ends_with(".h"))
            continue;
        for (const std::string& include : source.includes) {
            for (const std::string& heavy : kHeavy) {
                if (include.find("<" + heavy) == 0 && include != kDeclaresOnly)
                    wrong << QString("%1 includes %2").arg(source.path.c_str(), include.c_str());
            }
        }
    }
    QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

void TestLayering::everyFolderSaysItsJob()
{
    QStringList wrong;
    int folders = 0;
    for (const char* top : {"app", "core", "sim", "ui", "tests"}) {
        if (!fs::exists(root() / top))
            continue;
        for (const auto& entry : fs::recursive_directory_iterator(root() / top)) {
            if (entry.path().filename() != "CMakeLists.txt")
                continue;
            ++folders;
            const std::string folder = entry.path().parent_path().lexically_relative(root()).generic_string();
            std::ifstream in(entry.path());
            std::string line;
            std::getline(in, line);
            // "# core/mesh: named axes over devices." for the folders with targets of ours, any sentence for the tests.
            const bool says = line.starts_with("# ") && line.size() > folder.size() + 12;
            const bool named = folder.starts_with("tests") || line.starts_with("# " + folder + ": ");
            if (!says || !named)
                wrong << QString("%1/CMakeLists.txt begins with \"%2\"").arg(folder.c_str(), line.c_str());
        }
    }
    QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
    QVERIFY(folders > 5);
}

void TestLayering::everySourceNamesTheLicence()
{
    QStringList wrong;
    for (const Source& source : sources()) {
        if (source.firstLine != "// SPDX-License-Identifier: GPL-3.0-or-later")
            wrong << source.path.c_str();
    }
    QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

void TestLayering::everySourceIsFormatted()
{
    // Releases of clang-format differ in what they make of one style: the sources are formatted by Debian 12's.
    const QString program = QStandardPaths::findExecutable("clang-format");
    QProcess version;
    version.start(program.isEmpty() ? "clang-format" : program, {"--version"});
    if (program.isEmpty() || !version.waitForFinished() || !version.readAllStandardOutput().contains("version 14."))
        QSKIP("clang-format 14 is not installed");

    std::array<QStringList, 2> halves;
    for (std::size_t i = 0; i < sources().size(); ++i)
        halves[i % 2] << QString::fromStdString(sources()[i].path);
    std::array<QProcess, 2> checks;
    for (std::size_t half = 0; half < 2; ++half) {
        checks[half].setWorkingDirectory(QString::fromStdString(root().string()));
        checks[half].start(program, QStringList{"--dry-run", "-Werror"} + halves[half]);
    }
    for (QProcess& check : checks) {
        QVERIFY(check.waitForFinished(120'000));
        QVERIFY2(check.exitCode() == 0, check.readAllStandardError().left(2000).constData());
    }
}

MESHWRIGHT_TEST(TestLayering)

} // namespace tst_layering

#include "tst_layering.moc"
