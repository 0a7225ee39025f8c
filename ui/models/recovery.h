// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <QLockFile>
#include <QObject>
#include <QString>
#include <QTimer>

#include <memory>
#include <optional>
#include <vector>

namespace meshwright::ui {

class StudyDocument;

/// An edited study that a program left behind when it was killed. While this value lives, no other program is offered it.
struct RecoveredStudy {
    sim::StudySource source;
    QString path; ///< the file that it belongs to; may be empty
    QString copy; ///< the file that keeps it
    std::shared_ptr<QLockFile> lock;

    /// Takes the copy away: somebody has the study, or has said that nobody wants it.
    void forget() const;
};

/// Keeps a copy of unsaved edits in a folder, so that they outlive the program. A copy is written shortly after an edit (as a whole, beside
/// a lock that its program holds), and taken away when the study is saved or closed.
class Recovery : public QObject {
    Q_OBJECT

public:
    /// `folder` is made where it is missing; one that cannot be written means that nothing is kept.
    Recovery(StudyDocument& document, const QString& folder, QObject* parent = nullptr);
    ~Recovery() override;

    /// What programs that are no longer running left in the folder, the newest first. A copy stays there until it is forgotten, so that it
    /// outlives this program too. Copies that cannot be read are left out, and left alone.
    static std::vector<RecoveredStudy> leftBehind(const QString& folder);

    /// Writes the copy now, if there are unsaved edits.
    void store();

    /// Where this user's copies lie: `meshwright/recovery` in XDG_STATE_HOME (~/.local/state).
    static QString defaultFolder();

    /// How long after an edit the copy is written.
    static constexpr int kDelayMilliseconds = 300;

private:
    void discard();

    StudyDocument& m_document;
    QString m_file;
    QLockFile m_lock;
    QTimer m_timer;
};

} // namespace meshwright::ui
