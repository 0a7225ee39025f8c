// SPDX-License-Identifier: GPL-3.0-or-later
// throwaway: renders the panel
#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/study/edit_text.h"
#include "ui/models/selection.h"
#include "ui/study/study_panel.h"
#include "ui/theme/theme.h"
using namespace meshwright;
int main(int argc, char** argv)
{
    QApplication app(argc, argv);
    const QStringList a = app.arguments(); // study width height theme out [field] [keys] [settings...]
    ui::applyTheme(app, a[4] == "dark" ? ui::ThemeChoice::Dark : ui::ThemeChoice::Light);
    sim::Session session(valueOf(sim::defaultCatalogue()));
    const auto path = resourcesDirectory() / "examples" / a[1].toStdString();
    sim::StudySource source{valueOf(readFile(QFileInfo::exists(a[1]) ? a[1].toStdString() : path.string())), path.string(), {}};
    for (int i = 8; i < a.size(); ++i)
        source.settings.push_back(a[i].toStdString());
    ui::Selection selection;
    ui::StudyPanel panel(selection, session.catalogue());
    panel.resize(a[2].toInt(), a[3].toInt());
    panel.setAnalysis(session.analyse({source.text, source.file, {}}));
    panel.setAnalysis(session.analyse(source));
    panel.show();
    selection.setArray("layers.1.w");
    QTest::qWait(50);
    if (a.size() > 6 && a[6] != "-") {
        if (a[6] == "bottom") {
            auto* scroll = panel.findChild<QScrollArea*>();
            scroll->verticalScrollBar()->setValue(scroll->verticalScrollBar()->maximum());
        } else if (a[6] == "middle") {
            auto* scroll = panel.findChild<QScrollArea*>();
            scroll->verticalScrollBar()->setValue(scroll->verticalScrollBar()->maximum() / 2);
        } else
            panel.showField(a[6]);
        QTest::qWait(50);
        if (a.size() > 7 && a[7] != "-" && QApplication::focusWidget()) {
            QTest::keyClicks(QApplication::focusWidget(), a[7]);
            QTest::qWait(50);
        }
    }
    QImage image = panel.grab().toImage();
    if (QWidget* popup = QApplication::activePopupWidget()) {
        QPainter p(&image);
        p.drawPixmap(panel.mapFromGlobal(popup->pos()), popup->grab());
    }
    image.save(a[5]);
    return 0;
}
