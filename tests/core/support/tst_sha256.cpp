// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/sha256.h"
#include "tests/test_class.h"

namespace tst_sha256 {

using namespace meshwright;

/// The digests that NIST and every other program give.
class TestSha256 : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void digests_data();
    void digests();
};

void TestSha256::digests_data()
{
    QTest::addColumn<std::string>("bytes");
    QTest::addColumn<QString>("digest");
    // NIST, Secure Hash Standard: examples; the lengths around a block's end were computed with sha256sum.
    QTest::newRow("nothing") << std::string() << "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    QTest::newRow("abc") << std::string("abc") << "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    QTest::newRow("two blocks") << std::string("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
                                << "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
    QTest::newRow("a million") << std::string(1'000'000, 'a')
                               << "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    for (const auto& [length, digest] : {std::pair{55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
             std::pair{56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
             std::pair{64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"}})
        QTest::addRow("%d bytes", length) << std::string(static_cast<std::size_t>(length), 'a') << digest;
}

void TestSha256::digests()
{
    QFETCH(std::string, bytes);
    QFETCH(QString, digest);
    QCOMPARE(QString::fromStdString(sha256Text(bytes)), digest);
}

MESHWRIGHT_TEST(TestSha256)

} // namespace tst_sha256

#include "tst_sha256.moc"
