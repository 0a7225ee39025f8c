// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/targets.h"
#include "tests/test_class.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace tst_fuzz_corpus {

namespace fs = std::filesystem;

using Feed = void (*)(std::string_view);

/// Feeds every target with every file of its corpus: seeds, and what libFuzzer found. A target that is not content ends the program.
class TestFuzzCorpus : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void replay_data();
    void replay();
    void foldersAreTargets();
    void cutSeeds_data();
    void cutSeeds();
};

namespace {

const std::map<std::string, Feed>& targets()
{
    using namespace meshwright::fuzz;
    static const std::map<std::string, Feed> kTargets = {{"catalogue", feedCatalogue}, {"chakra", feedChakra},
        {"compared", feedCompared}, {"csv", feedCsv}, {"flags", feedFlags}, {"hardware", feedHardware}, {"hlo", feedHlo},
        {"host_profile", feedHostProfile}, {"launch", feedLaunch}, {"records", feedRecords}, {"nccl_log", feedNcclLog},
        {"sweep", feedSweep}, {"logical_rules", feedLogicalRules}, {"manifest", feedManifest}, {"mesh", feedMesh},
        {"messages", feedMessages}, {"model_config", feedModelConfig}, {"npy", feedNpy}, {"page", feedPage}, {"trace", feedTrace},
        {"op_rule", feedOpRule}, {"program", feedProgram}, {"report", feedReport}, {"settings", feedSettings},
        {"sharding", feedSharding}, {"study", feedStudy}, {"tiles", feedTiles}, {"training_result", feedTrainingResult}};
    return kTargets;
}

fs::path corpus()
{
    return fs::path(MESHWRIGHT_SOURCE_DIR) / "tests/fuzz/corpus";
}

std::vector<fs::path> filesOf(const fs::path& folder)
{
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

std::string contentOf(const fs::path& path)
{
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

void TestFuzzCorpus::replay_data()
{
    QTest::addColumn<Feed>("feed");
    QTest::addColumn<QString>("file");
    for (const auto& [name, feed] : targets()) {
        for (const fs::path& file : filesOf(corpus() / name))
            QTest::newRow((name + "/" + file.filename().string()).c_str()) << feed << QString::fromStdString(file.string());
    }
}

void TestFuzzCorpus::replay()
{
    QFETCH(Feed, feed);
    QFETCH(QString, file);
    const std::string content = contentOf(file.toStdString());
    feed(content);
    QVERIFY2(fs::exists(file.toStdString()), "the file was read");
}

void TestFuzzCorpus::foldersAreTargets()
{
    std::set<std::string> folders;
    for (const fs::path& folder : filesOf(corpus())) {
        QVERIFY2(targets().contains(folder.filename().string()), folder.filename().c_str());
        folders.insert(folder.filename().string());
        QVERIFY2(!filesOf(folder).empty(), folder.filename().c_str());
    }
    QCOMPARE(folders.size(), targets().size());
}

void TestFuzzCorpus::cutSeeds_data()
{
    QTest::addColumn<Feed>("feed");
    QTest::addColumn<QString>("folder");
    for (const auto& [name, feed] : targets())
        QTest::newRow(name.c_str()) << feed << QString::fromStdString((corpus() / name).string());
}

/// Texts that end too early, at 16 places each: what a stopped download or a slip of the mouse gives.
void TestFuzzCorpus::cutSeeds()
{
    QFETCH(Feed, feed);
    QFETCH(QString, folder);
    constexpr std::size_t kPlaces = 16;
    std::size_t fed = 0;
    for (const fs::path& file : filesOf(folder.toStdString())) {
        const std::string content = contentOf(file);
        if (content.size() > 16384)
            continue;
        for (std::size_t i = 1; i < kPlaces; ++i, ++fed)
            feed(std::string_view(content).substr(0, content.size() * i / kPlaces));
    }
    QVERIFY(fed > 0);
}

MESHWRIGHT_TEST(TestFuzzCorpus)

} // namespace tst_fuzz_corpus

#include "tst_fuzz_corpus.moc"
