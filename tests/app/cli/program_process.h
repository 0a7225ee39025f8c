// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/json_schema.h"

#include <QProcess>

/// The command line as a user runs it.
namespace meshwright::tests {

struct Outcome {
    int code = -1;
    QByteArray out;
    QByteArray err;
};

inline Outcome runProgram(const QString& program, const QStringList& arguments, const QByteArray& input = {})
{
    QProcess process;
    process.start(program, arguments);
    process.write(input);
    process.closeWriteChannel();
    if (!process.waitForFinished(60'000) || process.exitStatus() != QProcess::NormalExit)
        return {};
    return {process.exitCode(), process.readAllStandardOutput(), process.readAllStandardError()};
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

} // namespace meshwright::tests
