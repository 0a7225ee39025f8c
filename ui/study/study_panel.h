// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <QWidget>

#include <memory>

class QScrollArea;

namespace meshwright::ui {

class ProblemsSection;
class Section;
class Selection;
struct StudyFacts;
class ValueEdit;

/// A study as fields that can be edited: mesh, hardware, model, specs, and what is wrong.
///
/// Every edit is a signal; the document that takes it gives the panel the new source. What is being typed is never replaced.
class StudyPanel : public QWidget {
    Q_OBJECT

public:
    StudyPanel(Selection& selection, const sim::Catalogue& catalogue, QWidget* parent = nullptr);
    ~StudyPanel() override;

    /// The document as it is now: shown at once, before an analysis of it is there. From the first call on analyses of other sources only
    /// tell how arrays lie.
    void setSource(const sim::StudySource& source);

    /// What is known of the document, or was of an earlier state of it. Never null.
    void setAnalysis(const std::shared_ptr<const sim::Analysis>& analysis);

    /// Brings the keyboard to what edits a path of the study: "mesh.data", "sharding.layers.1.w". False when nothing does.
    bool showField(const QString& path);

    void showProblems();

    QSize sizeHint() const override { return {340, 700}; }

Q_SIGNALS:
    /// One edit, to be undone as one: `path=value` each, as `applySettings` takes them.
    void settingsChanged(const QStringList& settings);

private:
    void refresh();
    void orderKeyboard();

    const sim::Catalogue& m_catalogue;
    std::optional<sim::StudySource> m_source;
    bool m_hasOwnSource = false; ///< setSource was called
    std::shared_ptr<const sim::Analysis> m_latest;
    std::shared_ptr<const sim::Analysis> m_built; ///< the last that knows how arrays lie
    std::shared_ptr<const StudyFacts> m_facts;
    ValueEdit* m_name;
    QScrollArea* m_scroll;
    std::vector<Section*> m_sections;
    std::vector<const QWidget*> m_order; ///< in which Tab goes, as it was set last
    ProblemsSection* m_problems;
};

} // namespace meshwright::ui
