// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "sim/session/session.h"
#include "ui/theme/theme.h"

#include <QWidget>

#include <memory>

namespace meshwright::ui {

/// A view of a study. The window gives it every new analysis, exports its picture and shows its command.
///
/// A view keeps what it shows of an analysis that has problems: with `!analysis->simulated` (or whatever part it draws absent) it goes on
/// showing the last complete one, greyed, with a line that says why.
class View : public QWidget {
    Q_OBJECT

public:
    using QWidget::QWidget;

    /// Never null. Called on the UI thread; must return within a few milliseconds.
    virtual void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) = 0;

    /// Another study was opened: nothing that was shown of the one before stays. Its first analysis may take a while.
    void beginStudy();

    /// What the view shows, to be saved as SVG, PNG or PDF.
    virtual DisplayList picture() const = 0;

    /// The command line that gives what is on screen: `meshwright simulate wide_mlp.yaml --set mesh.data=8`.
    virtual QString command() const = 0;

    /// Shows an analysis (never null) once the view can be seen: at once, or when it is shown the next time. A hidden view costs nothing.
    void present(std::shared_ptr<const sim::Analysis> analysis);

    /// Shows the analysis that was presented last, hidden or not.
    void bringUpToDate();

protected:
    /// Goes back to what the view shows without a study, and may say that one is being analysed. For views that show something of a study.
    virtual void forgetStudy() { }

    void showEvent(QShowEvent* event) override;

    /// The focus of a widget that is disabled or hidden while work runs stays in the view.
    bool focusNextPrevChild(bool next) override;

    Theme theme() const { return themeOf(palette()); }
    QColor colour(ColourRole role) const { return qtColour(role, theme()); }

private:
    std::shared_ptr<const sim::Analysis> m_waiting; ///< presented and not yet shown; null: none
};

/// The study's file and settings as arguments of the command line, quoted for a POSIX shell: `wide_mlp.yaml --set mesh.data=8`.
QString studyArguments(const sim::StudySource& source);

/// As `sim::writtenCause`.
QString writtenCause(const std::string& annotation);

/// A sentence of the engine as a window shows it: with arrows, minus signs, and collectives by their names: `all-reduce`.
QString shownSentence(const std::string& sentence);

/// A word quoted for a POSIX shell where that is needed.
QString shellQuoted(const QString& word);

} // namespace meshwright::ui
