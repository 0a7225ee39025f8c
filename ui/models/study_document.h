// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/session/session.h"

#include <QObject>
#include <QStringList>
#include <QUndoStack>

namespace meshwright::ui {

/// The study that a window edits: a text, settings over it (as --set takes them), undo, and the file it belongs to.
///
/// Every edit adds settings; saving writes them into the text and keeps its comments and order.
class StudyDocument : public QObject {
    Q_OBJECT

public:
    explicit StudyDocument(QObject* parent = nullptr);

    const sim::StudySource& source() const { return m_source; }

    /// The file that Save writes to; empty for an example and for a study that was never saved.
    const QString& path() const { return m_path; }

    /// Whether the text stands in a file, its own or an example's, as it was opened.
    bool hasFile() const { return !m_path.isEmpty() || m_isExample; }

    /// "wide_mlp.yaml", "wide_mlp (example)", "step (not saved)" or "untitled".
    QString title() const;

    bool isModified() const { return !m_undo.isClean(); }
    QUndoStack& undoStack() { return m_undo; }

    /// Takes a study from a file, or a program as the study that simulates it (`programStudyText`), which no file has yet. `isExample`: it is not to be written over, Save asks for a place. Forgets what could be undone.
    /// Problems: those of `readFile` (MW1004 more than kLargestDocumentBytes), MW1830 the file is something else than a study (a model's
    /// config.json, say).
    Result<Done> open(const QString& path, bool isExample = false);

    /// Takes a study that is not in a file as it stands: one recovered, or embedded in a report. It counts as modified, unless it can be had again from
    /// what was opened.
    void adopt(sim::StudySource source, const QString& path, bool isModified = true);

    /// One undoable edit: `path=value` each. Edits of the same paths that follow each other quickly become one step of undo.
    void change(const QStringList& settings, const QString& what);

    /// The whole study as another text (undoable); `what` says where it is from. Texts that follow each other quickly become one step of undo.
    void changeText(std::string text, const QString& what);

    /// The whole study, settings too, as another state of it (undoable). Precondition: it is of the same file.
    void changeState(sim::StudySource state, const QString& what);

    /// Takes the spec at a path out of the study (undoable): `sharding.layers.1.w`.
    void removeSpec(const QString& path);

    /// Writes the study to a file, which it then belongs to; what is there is replaced.
    /// Problems: those of `editedText` and `writeFileAtomically`.
    Result<Done> save(const QString& path);

    /// Whether another program has written to path() since this study was read from it or saved to it. A file that is gone was not.
    bool isChangedOnDisk() const;

    /// Takes what another program has written to path() in place of the study (undoable), which then is not modified. False where the file cannot be read.
    /// Precondition: the study is not modified.
    bool reload();

    /// Writes the study to its file. Precondition: path() is not empty.
    /// Problems: those of `save(path)`; MW1829 another program has changed the file.
    Result<Done> save();

Q_SIGNALS:
    void sourceChanged();
    void modifiedChanged(bool modified);
    void pathChanged(const QString& path);

private:
    friend class EditCommand;
    void begin(sim::StudySource source, const QString& path);
    void setSource(sim::StudySource source);

    sim::StudySource m_source;
    QString m_path;
    bool m_isExample = false;
    std::string m_onDisk; ///< what is in the file of `m_path`, as far as this program knows
    QUndoStack m_undo;
};

} // namespace meshwright::ui
