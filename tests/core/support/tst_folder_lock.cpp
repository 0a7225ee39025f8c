// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/folder_lock.h"

#include "core/support/file.h"
#include "tests/test_class.h"

#include <fmt/format.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace tst_folder_lock {

using namespace meshwright;
namespace fs = std::filesystem;

/// One process at a time writes to a folder.
class TestFolderLock : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init();
    void secondLockNamesTheFirst();
    void whatAKilledProcessHeldIsFree();
    void filesOfOthersAreNotTaken_data();
    void filesOfOthersAreNotTaken();
    void noSuchFolder();

private:
    fs::path folder() const { return m_folder->path().toStdString(); }
    fs::path lockFile() const { return folder() / ".meshwright-lock"; }

    std::unique_ptr<QTemporaryDir> m_folder;
};

void TestFolderLock::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
    QVERIFY(m_folder->isValid());
}

void TestFolderLock::secondLockNamesTheFirst()
{
    {
        const auto first = FolderLock::take(folder());
        QVERIFY(first);
        const auto second = FolderLock::take(folder());
        QVERIFY(!second);
        const Problem& problem = second.error().front();
        QCOMPARE(problem.id, std::string("MW1008"));
        QVERIFY2(problem.message.find(fmt::format("is in use: process {} on ", ::getpid())) != std::string::npos,
            problem.message.c_str());
        QVERIFY(fs::exists(lockFile()));
    }
    QVERIFY(fs::is_empty(folder()));
    QVERIFY(FolderLock::take(folder()));
}

void TestFolderLock::whatAKilledProcessHeldIsFree()
{
    std::array<int, 2> ready{};
    QCOMPARE(::pipe(ready.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const auto held = FolderLock::take(folder());
        if (::write(ready[1], held ? "y" : "n", 1) == 1)
            ::pause();
        ::_exit(0);
    }
    char answer = 0;
    QCOMPARE(::read(ready[0], &answer, 1), ssize_t{1});
    QCOMPARE(answer, 'y');
    const auto refused = FolderLock::take(folder());
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    QVERIFY(!refused);
    QVERIFY(refused.error().front().message.find(fmt::format("process {} on ", child)) != std::string::npos);
    QVERIFY(fs::exists(lockFile())); // stale
    QVERIFY(FolderLock::take(folder()));
    ::close(ready[0]);
    ::close(ready[1]);
}

void TestFolderLock::filesOfOthersAreNotTaken_data()
{
    QTest::addColumn<bool>("isLink");

    QTest::newRow("a file of somebody else") << false;
    QTest::newRow("a link to one") << true;
}

void TestFolderLock::filesOfOthersAreNotTaken()
{
    QFETCH(bool, isLink);
    const fs::path victim = isLink ? folder() / "victim" : lockFile();
    QVERIFY(writeFileAtomically(victim, "precious"));
    if (isLink)
        fs::create_symlink(victim, lockFile());
    const auto lock = FolderLock::take(folder());
    QVERIFY(!lock);
    QCOMPARE(lock.error().front().id, std::string("MW1005"));
    QCOMPARE(valueOf(readFile(victim)), std::string("precious"));
    QVERIFY(fs::exists(lockFile()));
}

void TestFolderLock::noSuchFolder()
{
    QCOMPARE(FolderLock::take(folder() / "nowhere").error().front().id, std::string("MW1005"));
}

MESHWRIGHT_TEST(TestFolderLock)

} // namespace tst_folder_lock

#include "tst_folder_lock.moc"
