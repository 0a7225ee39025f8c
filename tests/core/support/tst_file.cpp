// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"

#include <QtTest>

#include <filesystem>
#include <unistd.h>

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

/// What is no file is written to, never replaced by a file (as root that would take /dev/null away).
void TestFile::devicesStayDevices()
{
    fs::create_symlink("/dev/null", path("null"));
    QVERIFY(writeFileAtomically(path("null"), "gone"));
    QVERIFY(fs::is_character_file(path("null")));
    QVERIFY(checkWritable(path("null")));
    fs::create_symlink("/dev/full", path("full"));
    const auto written = writeFileAtomically(path("full"), "x");
    QVERIFY(!written);
    QCOMPARE(written.error().front().id, std::string("MW1005"));
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
    QCOMPARE(read.error().front().message, "there is no file \"" + path("nowhere").string() + "\"");
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

QTEST_APPLESS_MAIN(TestFile)
#include "tst_file.moc"
