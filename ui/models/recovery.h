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

/// An edited study that a program left behind when it was killed.
struct RecoveredStudy {
    sim::StudySource source;
    QString path; ///< the file that it belongs to; may be empty
};

/// Keeps a copy of unsaved edits in a folder, so that they outlive the program. A copy is written shortly after an edit (as a whole, beside
/// a lock that its program holds), and taken away when the study is saved or closed.
class Recovery : public QObject {
    Q_OBJECT

public:
    /// `folder` is made where it is missing; one that cannot be written means that nothing is kept.
    Recovery(StudyDocument& document, const QString& folder, QObject* parent = nullptr);
    ~Recovery() override;

    /// What programs that are no longer running left in the folder; each is given once, and then taken away.
    static std::vector<RecoveredStudy> takeLeftBehind(const QString& folder);

    /// Where this user's copies lie: `meshwright/recovery` in XDG_STATE_HOME (~/.local/state).
    static QString defaultFolder();

    /// How long after an edit the copy is written.
    static constexpr int kDelayMilliseconds = 300;

private:
    void store();
    void discard();

    StudyDocument& m_document;
    QString m_file;
    QLockFile m_lock;
    QTimer m_timer;
};

} // namespace meshwright::ui
