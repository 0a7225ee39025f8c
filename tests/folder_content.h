// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QDir>
#include <QFile>
#include <QString>

#include <map>

namespace meshwright::tests {

/// All files of a folder, by name.
inline std::map<QString, QByteArray> contentOf(const QString& folder)
{
    std::map<QString, QByteArray> files;
    for (const QFileInfo& info : QDir(folder).entryInfoList(QDir::Files)) {
        QFile file(info.filePath());
        if (file.open(QIODevice::ReadOnly))
            files[info.fileName()] = file.readAll();
    }
    return files;
}

} // namespace meshwright::tests
