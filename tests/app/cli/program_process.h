// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/json_schema.h"

#include <QProcess>
#include <QtTest>

#include <csignal>
#include <functional>

/// The command line as a user runs it.
namespace meshwright::tests {

struct Outcome {
    int code = -1;
    QByteArray out;
    QByteArray err;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kProgramMilliseconds = 600'000; ///< a sanitized program takes ten times as long
#else
inline constexpr int kProgramMilliseconds = 60'000;
#endif

/// The environment of the tests without what changes the program's words.
inline QProcessEnvironment plainEnvironment()
{
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    for (const char* name : {"NO_COLOR", "CLICOLOR_FORCE", "COLORTERM", "MESHWRIGHT_RESOURCES"})
        environment.remove(name);
    return environment;
}

inline Outcome runProgram(const QString& program, const QStringList& arguments, const QByteArray& input = {},
    const QProcessEnvironment& environment = plainEnvironment())
{
    QProcess process;
    process.setProcessEnvironment(environment);
    process.start(program, arguments);
    process.write(input);
    process.closeWriteChannel();
    if (!process.waitForFinished(kProgramMilliseconds) || process.exitStatus() != QProcess::NormalExit)
        return {};
    return {process.exitCode(), process.readAllStandardOutput(), process.readAllStandardError()};
}

/// The columns of a table of exit codes: what is typed, the code, and words of what is said.
inline void addExitCodeColumns()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("said");
}

/// Judges an outcome by the row of a table with columns `code` and `said`; `words` is where it says it.
inline void checkExitCode(const Outcome& outcome, const QByteArray& words)
{
    QFETCH(int, code);
    QFETCH(QString, said);
    QVERIFY2(outcome.code == code, "exit code " + QByteArray::number(outcome.code) + "\n" + outcome.out + outcome.err);
    QVERIFY2(words.contains(said.toUtf8()), words);
}

inline void checkExitCode(const Outcome& outcome)
{
    checkExitCode(outcome, outcome.err);
}

inline QString example(const QString& name)
{
    return QString(MESHWRIGHT_SOURCE_DIR) + "/resources/examples/" + name;
}

inline QStringList errorsAgainst(const QString& schema, const QByteArray& json)
{
    QFile file(QString(MESHWRIGHT_SOURCE_DIR) + "/resources/schemas/" + schema);
    if (!file.open(QIODevice::ReadOnly))
        return {"no schema"};
    const QJsonDocument document = QJsonDocument::fromJson(json);
    if (document.isNull())
        return {"no JSON"};
    return schemaErrors(document.object(), QJsonDocument::fromJson(file.readAll()).object());
}

/// True once the file has so many lines.
inline bool hasLines(const QString& path, qsizetype lines)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) && file.readAll().count('\n') >= lines;
}

/// True once the process waits for Ctrl-C in a thread of its own: Linux lists the signals that the others block, as bits.
inline bool waitsForInterrupts(const QProcess& process)
{
    QFile status(QString("/proc/%1/status").arg(process.processId()));
    if (!status.open(QIODevice::ReadOnly))
        return false;
    const QByteArray text = status.readAll();
    const QByteArray blocked = text.mid(text.indexOf("SigBlk:") + 7, 20).simplified();
    return ((blocked.left(16).toULongLong(nullptr, 16) >> (SIGINT - 1)) & 1U) != 0;
}

/// Ctrl-C as soon as `ready`. False if the process ended before, or half a minute passed.
inline bool interruptWhen(QProcess& process, const std::function<bool()>& ready)
{
    constexpr int kLook = 10; // milliseconds
    for (int waited = 0; waited < 30'000 && process.state() == QProcess::Running; waited += kLook) {
        if (ready())
            return ::kill(static_cast<pid_t>(process.processId()), SIGINT) == 0;
        process.waitForFinished(kLook);
    }
    return false;
}

} // namespace meshwright::tests
