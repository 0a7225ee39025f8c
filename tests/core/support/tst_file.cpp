// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "tests/test_class.h"

#include <fmt/format.h>

#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

namespace tst_file {

using namespace meshwright;
namespace fs = std::filesystem;

class TestFile : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init();
    void roundTrip();
    void replacesAsAWhole();
    void followsLinks();
    void devicesStayDevices();
    void writableIsAskedBefore();
    void missing();
    void directory();
    void unreadable();
    void unwritable_data();
    void unwritable();
    void readOnlyFolder();
    void tooLarge();
    void devicesWithoutEnd();
    void permissionsStay_data();
    void permissionsStay();
    void protectedFilesAreNotReplaced();
    void linksInTheWayAreNotFollowed();
    void newFilesAreExclusive();
    void linksThatLeadNowhere();
    void abandonedFilesAreRemoved();
    void filesOfOthersStay();
    void writtenAtOnceByMany();
    void fullDiskLeavesWhatWas();
    void linesAreWhole();

private:
    fs::path path(const char* name) const { return fs::path(m_folder->path().toStdString()) / name; }
    std::size_t entries() const
    {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(path("")), fs::directory_iterator()));
    }

    std::unique_ptr<QTemporaryDir> m_folder;
};

void TestFile::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
    QVERIFY(m_folder->isValid());
}

void TestFile::roundTrip()
{
    const std::string content("a\0b\nµ\r\n", 8);
    QVERIFY(writeFileAtomically(path("x"), content));
    const auto read = readFile(path("x"));
    QVERIFY(read);
    QCOMPARE(*read, content);
    QVERIFY(writeFileAtomically(path("empty"), ""));
    QCOMPARE(valueOf(readFile(path("empty"))), std::string());
}

void TestFile::replacesAsAWhole()
{
    QVERIFY(writeFileAtomically(path("x"), "a long first content"));
    QVERIFY(writeFileAtomically(path("x"), "short"));
    QCOMPARE(valueOf(readFile(path("x"))), std::string("short"));
    QCOMPARE(entries(), std::size_t{1}); // nothing temporary stays behind
}

/// A link keeps pointing where it does.
void TestFile::followsLinks()
{
    QVERIFY(writeFileAtomically(path("target"), "before"));
    fs::create_symlink(path("target"), path("link"));
    QVERIFY(writeFileAtomically(path("link"), "after"));
    QVERIFY(fs::is_symlink(path("link")));
    QCOMPARE(valueOf(readFile(path("target"))), std::string("after"));
    QCOMPARE(entries(), std::size_t{2});
}

/// What is not a file is written to, never replaced by a file (as root that would take /dev/null away).
void TestFile::devicesStayDevices()
{
    fs::create_symlink("/dev/null", path("null"));
    QVERIFY(writeFileAtomically(path("null"), "gone"));
    QVERIFY(fs::is_character_file(path("null")));
    QVERIFY(checkWritable(path("null")));
    fs::create_symlink("/dev/full", path("full"));
    const auto written = writeFileAtomically(path("full"), "x");
    QVERIFY(!written);
    QCOMPARE(written.error().front().id, std::string("MW1007"));
    QVERIFY(fs::is_character_file("/dev/full"));
}

void TestFile::writableIsAskedBefore()
{
    QVERIFY(checkWritable(""));
    QVERIFY(checkWritable("-"));
    QVERIFY(checkWritable(path("new")));
    QVERIFY(checkFolderWritable(path("a") / "b"));
    QVERIFY(checkFolderWritable(path("")));
    QCOMPARE(entries(), std::size_t{0}); // asking changes nothing
    QVERIFY(!checkWritable(path("")));
    QVERIFY(!checkWritable(path("nowhere") / "x"));
    QVERIFY(writeFileAtomically(path("file"), "x"));
    QVERIFY(checkWritable(path("file")));
    QVERIFY(!checkFolderWritable(path("file")));
    QVERIFY(!checkFolderWritable(path("file") / "below"));
    QCOMPARE(valueOf(readFile(path("file"))), std::string("x"));
}

void TestFile::missing()
{
    const auto read = readFile(path("nowhere"));
    QVERIFY(!read);
    QCOMPARE(read.error().front().id, std::string("MW1001"));
    QCOMPARE(read.error().front().message, "no such file: \"" + path("nowhere").string() + "\"");
    QCOMPARE(read.error().front().place.file, path("nowhere").string());
}

void TestFile::directory()
{
    const auto read = readFile(path(""));
    QVERIFY(!read);
    QCOMPARE(read.error().front().id, std::string("MW1002"));
    QVERIFY(read.error().front().message.ends_with("is a directory, not a file"));
}

void TestFile::unreadable()
{
    // Linux lets everyone open this one, and nobody read its first page.
    const auto read = readFile("/proc/self/mem");
    QVERIFY(!read);
    QCOMPARE(read.error().front().id, std::string("MW1003"));
    QVERIFY(read.error().front().message.starts_with("cannot read \"/proc/self/mem\": "));
}

void TestFile::unwritable_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("reason");

    QTest::newRow("no such folder") << "nowhere/x"
                                    << "No such file or directory";
    QTest::newRow("a directory") << "folder"
                                 << "it is a directory";
    QTest::newRow("a file as folder") << "file/x"
                                      << "Not a directory";
}

void TestFile::unwritable()
{
    QFETCH(QString, name);
    QFETCH(QString, reason);
    fs::create_directory(path("folder"));
    QVERIFY(writeFileAtomically(path("file"), "before"));
    const fs::path target = path(name.toUtf8().constData());
    const auto written = writeFileAtomically(target, "x");
    QVERIFY(!written);
    QCOMPARE(written.error().front().id, std::string("MW1005"));
    QCOMPARE(written.error().front().message, "cannot write \"" + target.string() + "\": " + reason.toStdString());
    QVERIFY(!written.error().front().fix.empty());
    QCOMPARE(valueOf(readFile(path("file"))), std::string("before"));
}

void TestFile::readOnlyFolder()
{
    if (::geteuid() == 0)
        QSKIP("the superuser may write everywhere");
    QVERIFY(writeFileAtomically(path("x"), "before"));
    fs::permissions(path(""), fs::perms::owner_read | fs::perms::owner_exec);
    const auto written = writeFileAtomically(path("x"), "after");
    fs::permissions(path(""), fs::perms::owner_all);
    QVERIFY(!written);
    QCOMPARE(valueOf(readFile(path("x"))), std::string("before"));
}

void TestFile::tooLarge()
{
    // A sparse file: it has the size but takes no space.
    QVERIFY(writeFileAtomically(path("large"), "x"));
    fs::resize_file(path("large"), kLargestTextFileBytes + 1);
    const auto read = readFile(path("large"));
    QVERIFY(!read);
    QCOMPARE(read.error().front().id, std::string("MW1004"));
}

void TestFile::devicesWithoutEnd()
{
    const auto read = readFile("/dev/zero");
    QVERIFY(!read);
    QCOMPARE(read.error().front().id, std::string("MW1004"));
}

void TestFile::permissionsStay_data()
{
    QTest::addColumn<int>("mode");

    for (const int mode : {0600, 0640, 0644, 0666, 0700, 0755})
        QTest::addRow("%o", static_cast<unsigned>(mode)) << mode;
}

void TestFile::permissionsStay()
{
    QFETCH(int, mode);
    QVERIFY(writeFileAtomically(path("x"), "before"));
    QCOMPARE(::chmod(path("x").c_str(), static_cast<mode_t>(mode)), 0);
    QVERIFY(writeFileAtomically(path("x"), "after"));
    QCOMPARE(static_cast<int>(fs::status(path("x")).permissions()), mode);
    QCOMPARE(valueOf(readFile(path("x"))), std::string("after"));
}

void TestFile::protectedFilesAreNotReplaced()
{
    if (::geteuid() == 0)
        QSKIP("the superuser may write everywhere");
    QVERIFY(writeFileAtomically(path("x"), "before"));
    QCOMPARE(::chmod(path("x").c_str(), 0444), 0);
    QVERIFY(!checkWritable(path("x")));
    QVERIFY(!writeFileAtomically(path("x"), "after"));
    QCOMPARE(valueOf(readFile(path("x"))), std::string("before"));
}

/// Whoever guesses a temporary name can put a link there: all of them are taken here, as the names were before they were drawn at random.
void TestFile::linksInTheWayAreNotFollowed()
{
    QVERIFY(writeFileAtomically(path("victim"), "precious"));
    fs::create_symlink(path("victim"), path(fmt::format("x.{}.part", ::getpid()).c_str()));
    QVERIFY(writeFileAtomically(path("x"), "content"));
    QVERIFY(checkWritable(path("x")));
    QCOMPARE(valueOf(readFile(path("victim"))), std::string("precious"));
    QVERIFY(!fs::is_symlink(path("x")));
}

void TestFile::newFilesAreExclusive()
{
    QVERIFY(writeFileAtomically(path("victim"), "precious"));
    fs::create_symlink(path("victim"), path("link"));
    fs::create_symlink(path("nowhere"), path("dangling"));
    for (const char* name : {"victim", "link", "dangling"}) {
        const auto file = NewFile::create(path(name));
        QVERIFY2(!file, name);
        QCOMPARE(file.error().front().id, std::string("MW1005"));
    }
    QCOMPARE(valueOf(readFile(path("victim"))), std::string("precious"));
    QVERIFY(!fs::exists(path("nowhere")));
}

/// Where a link's end is missing, the file is made there, and the link stays one.
void TestFile::linksThatLeadNowhere()
{
    fs::create_symlink("target", path("second"));
    fs::create_symlink(path("second"), path("first"));
    QVERIFY(writeFileAtomically(path("first"), "content"));
    QVERIFY(fs::is_symlink(path("first")) && fs::is_symlink(path("second")));
    QCOMPARE(valueOf(readFile(path("target"))), std::string("content"));
}

/// A writer that is killed leaves a temporary file; the next writer in the folder removes it.
void TestFile::abandonedFilesAreRemoved()
{
    const pid_t child = ::fork();
    if (child == 0) {
        const rlimit small{4096, 4096};
        std::signal(SIGXFSZ, SIG_DFL); // ends the writer in the middle of its file
        setrlimit(RLIMIT_FSIZE, &small);
        (void)writeFileAtomically(path("x"), std::string(1 << 20, 'x')).has_value();
        ::_exit(0);
    }
    int status = 0;
    QCOMPARE(::waitpid(child, &status, 0), child);
    QVERIFY(WIFSIGNALED(status));
    QCOMPARE(entries(), std::size_t{1});
    QVERIFY(!fs::exists(path("x")));
    QVERIFY(writeFileAtomically(path("y"), "content"));
    QCOMPARE(entries(), std::size_t{1});
    QVERIFY(fs::exists(path("y")));
}

/// Only what is a temporary file by its name, and nobody writes to, is removed.
void TestFile::filesOfOthersStay()
{
    const std::vector<std::string> names = {"x.1.part", ".meshwright-1.part", ".meshwright-0123456789abcdeg.part",
        ".meshwright-0123456789abcdef.part.txt", "a.meshwright-0123456789abcdef.part"};
    for (const std::string& name : names)
        QVERIFY(writeFileAtomically(path(name.c_str()), "precious"));
    QVERIFY(writeFileAtomically(path("victim"), "precious"));
    fs::create_symlink(path("victim"), path(".meshwright-0000000000000000.part"));
    fs::create_directory(path(".meshwright-0000000000000001.part"));
    QCOMPARE(::mkfifo(path(".meshwright-0000000000000002.part").c_str(), 0600), 0);
    const auto held = NewFile::create(path(".meshwright-0000000000000003.part"));
    QVERIFY(held && ::flock(held->descriptor(), LOCK_EX) == 0);
    const std::size_t before = entries();
    QVERIFY(writeFileAtomically(path("y"), "content"));
    QCOMPARE(entries(), before + 1);
    QCOMPARE(valueOf(readFile(path("victim"))), std::string("precious"));
}

/// Writers of one file do not remove each other's temporary files: all succeed, and one of the contents is there as a whole.
void TestFile::writtenAtOnceByMany()
{
    std::vector<std::thread> writers;
    std::atomic<int> failures = 0;
    for (int i = 0; i < 8; ++i)
        writers.emplace_back([&, i] {
            for (int round = 0; round < 20; ++round)
                failures += writeFileAtomically(path("x"), std::string(10'000, static_cast<char>('a' + i))) ? 0 : 1;
        });
    for (std::thread& writer : writers)
        writer.join();
    QCOMPARE(failures.load(), 0);
    QCOMPARE(entries(), std::size_t{1});
    const std::string content = valueOf(readFile(path("x")));
    QCOMPARE(content, std::string(10'000, content.front()));
}

/// A limit on the size of files stands for a full disk.
void TestFile::fullDiskLeavesWhatWas()
{
    QVERIFY(writeFileAtomically(path("x"), "before"));
    auto growing = GrowingFile::open(path("lines"), true);
    QVERIFY(growing && growing->append("one\n"));
    rlimit old{};
    QCOMPARE(getrlimit(RLIMIT_FSIZE, &old), 0);
    rlimit small = old;
    small.rlim_cur = 1000;
    const auto oldHandler = std::signal(SIGXFSZ, SIG_IGN);
    QCOMPARE(setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto whole = writeFileAtomically(path("x"), std::string(5000, 'x'));
    const auto line = growing->append(std::string(5000, 'y') + "\n");
    setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, oldHandler);
    QVERIFY(!whole && whole.error().front().id == "MW1007");
    QCOMPARE(valueOf(readFile(path("x"))), std::string("before"));
    QVERIFY(!line && line.error().front().id == "MW1007");
    QCOMPARE(valueOf(readFile(path("lines"))), std::string("one\n")); // no half line
    QCOMPARE(entries(), std::size_t{2});
}

void TestFile::linesAreWhole()
{
    {
        auto file = GrowingFile::open(path("lines"), true);
        QVERIFY(file && file->append("one\n"));
        QCOMPARE(valueOf(readFile(path("lines"))), std::string("one\n")); // as soon as it is written
    }
    {
        auto file = GrowingFile::open(path("lines"), false);
        QVERIFY(file && file->append("two\n"));
    }
    QCOMPARE(valueOf(readFile(path("lines"))), std::string("one\ntwo\n"));
    QVERIFY(GrowingFile::open(path("lines"), true));
    QCOMPARE(valueOf(readFile(path("lines"))), std::string());
    QVERIFY(!GrowingFile::open(path("nowhere") / "lines", true));
}

MESHWRIGHT_TEST(TestFile)

} // namespace tst_file

#include "tst_file.moc"
