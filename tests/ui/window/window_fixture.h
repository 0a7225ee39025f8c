// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/resources.h"
#include "ui/window/main_window.h"
#include "ui/window/workbench.h"

#include <QTemporaryDir>

namespace meshwright::tests {

/// A window whose settings and copies lie in a folder of its own.
struct WindowFixture {
    QTemporaryDir folder;
    ui::MainWindow::Places places{QString::fromStdString((resourcesDirectory() / "examples").string()),
        folder.filePath("recovery"), folder.filePath("desktop.ini")};
    ui::MainWindow window{std::make_shared<sim::Session>(valueOf(sim::defaultCatalogue())), places};

    QString example(const QString& name) const { return places.examples + QLatin1Char('/') + name; }

    /// A copy of an example that may be written to.
    QString copyOf(const QString& name) const
    {
        const QString path = folder.filePath(name);
        QFile::copy(example(name), path);
        QFile::setPermissions(path, QFile::ReadOwner | QFile::WriteOwner);
        return path;
    }

    const sim::Analysis* analysis() { return window.workbench().analysis().get(); }

    /// Whether the views show the document as it stands.
    bool isShown() { return analysis() && analysis()->source == window.document().source(); }
};

} // namespace meshwright::tests
