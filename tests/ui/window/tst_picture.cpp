// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "tests/test_class.h"

#include <QImage>
#include <QProcess>
#include <QTemporaryDir>

namespace tst_picture {

using namespace meshwright;

/// The program with --picture: it ends by itself, with a picture or with the reason why there is none.
class TestPicture : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void ends_data();
    void ends();

private:
    QString written(const QString& name, const QByteArray& text) const;

    QTemporaryDir m_folder;
};

QString TestPicture::written(const QString& name, const QByteArray& text) const
{
    const QString path = m_folder.filePath(name);
    return writeFileAtomically(path.toStdString(), text.toStdString()) ? path : QString();
}

void TestPicture::initTestCase()
{
    QVERIFY(QDir(m_folder.path()).mkpath("weights"));
    QVERIFY(!written("deepspeed.sh", "deepspeed --num_gpus 8 train.py --deepspeed ds_config.json\n").isEmpty());
    QVERIFY(!written("weights.json", R"({"metadata": {"total_size": 1}, "weight_map": {}})").isEmpty());
    QVERIFY(!written("config.json", R"({"model_type": "mamba", "hidden_size": 64, "state_size": 16})").isEmpty());
    QVERIFY(!written("train.log", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.\n").isEmpty());
    QVERIFY(!written("cut.json", R"({"traceEvents": [{"ph": "X", "name": "a", "ts": 1, )").isEmpty());
}

void TestPicture::ends_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code"); // as the command line's
    QTest::addColumn<QString>("said"); // on standard error; empty: a picture is written

    const QString study = MESHWRIGHT_SOURCE_DIR "/resources/examples/digits.yaml";
    const auto refused = [&](const char* what, const char* file, const char* said) {
        QTest::newRow(what) << QStringList{m_folder.filePath(file)} << 3 << said;
    };
    refused("a folder", "weights", "MW1830");
    refused("no such file", "nowhere.yaml", "MW1001");
    refused("a launch line of another framework", "deepspeed.sh", "MW1494");
    refused("a list of weights", "weights.json", "MW1830");
    refused("a model that cannot be read", "config.json", "num_attention_heads");
    refused("a trace that is cut off", "cut.json", "error MW");
    QTest::newRow("an unknown view") << QStringList{study, "--view", "bogus"} << 2
                                     << "--view: \"bogus\" is not allowed here\n  fix: one of: design, time, memory";
    QTest::newRow("an unknown size") << QStringList{study, "--size", "wide"} << 2 << "--size: \"wide\" is not a size";
    QTest::newRow("an unknown theme") << QStringList{study, "--theme", "pink"} << 2 << "--theme: \"pink\" is not allowed here";
    QTest::newRow("an unknown option") << QStringList{study, "--veiw", "mesh"} << 2 << "veiw";
    QTest::newRow("a study") << QStringList{study, "--view", "memory", "--size", "1000x700"} << 0 << "";
    QTest::newRow("a log") << QStringList{m_folder.filePath("train.log")} << 0 << "";
    QTest::newRow("nothing") << QStringList{} << 0 << "";
}

void TestPicture::ends()
{
    QFETCH(const QStringList, arguments);
    QFETCH(const int, code);
    QFETCH(const QString, said);
    const QString picture = m_folder.filePath("picture.png");
    QFile::remove(picture);
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("QT_QPA_PLATFORM", "offscreen");
    for (const char* place : {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"})
        environment.insert(place, m_folder.filePath("home"));
    process.setProcessEnvironment(environment);
    process.start(MESHWRIGHT_GUI, QStringList{"--picture", picture} + arguments);
    QVERIFY2(process.waitForFinished(120'000), "it does not end");
    const QString words = QString::fromUtf8(process.readAllStandardError());
    QCOMPARE(process.exitStatus(), QProcess::NormalExit);
    QVERIFY2(process.exitCode() == code, qPrintable(QString::number(process.exitCode()) + "\n" + words));
    QVERIFY2(words.contains(said), qPrintable(words));
    QCOMPARE(!QImage(picture).isNull(), said.isEmpty());
}

MESHWRIGHT_TEST(TestPicture)

} // namespace tst_picture

#include "tst_picture.moc"
