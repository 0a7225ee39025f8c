// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/check_spec.h"

#include <QLineEdit>

class QCompleter;
class QStringListModel;

namespace meshwright::ui {

/// A line for a PartitionSpec: axis names are completed while they are typed, and what is wrong is underlined.
class SpecEdit : public QLineEdit {
    Q_OBJECT

public:
    explicit SpecEdit(QWidget* parent = nullptr);

    /// The array that the spec is for, and the mesh.
    void setSubject(StudyArray array, std::vector<MeshAxis> mesh);

    /// What is wrong with the text as it stands; an empty text is right, and means no spec.
    const std::vector<SpecProblem>& problems() const { return m_problems; }

    /// The nearest right spec, when there is one; empty otherwise.
    QString corrected() const;

    /// True while the list of completions is open: Return and Escape are its.
    bool isCompleting() const;

Q_SIGNALS:
    void problemsChanged();

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    /// The word around the cursor: what stands before it counts for completion, all of it is replaced.
    struct Word {
        int begin = 0;
        int end = 0;
    };
    Word wordAtCursor() const;
    void check();
    void complete();
    void insertCompletion(const QString& name);

    StudyArray m_array;
    std::vector<MeshAxis> m_mesh;
    std::vector<SpecProblem> m_problems;
    QCompleter* m_completer;
    QStringListModel* m_names;
};

/// Underlines as of a spelling mistake, in the colour of errors, for a text that is laid out by hand. Offsets are bytes of its UTF-8.
QList<QTextLayout::FormatRange> problemFormats(
    const QString& text, const std::vector<SpecProblem>& problems, const QColor& colour);

} // namespace meshwright::ui
