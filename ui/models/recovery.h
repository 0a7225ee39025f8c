// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <QLockFile>
#include <QObject>
#include <QString>
#include <QTimer>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace meshwright::ui {

class StudyDocument;

/// A page whose cells its reader has edited.
struct EditedPage {
    QString path; ///< the page's file
    std::string text; ///< the file as it was read
    std::vector<std::string> sources; ///< of the cells, as they are edited
};

/// A study with unsaved edits.
struct EditedStudy {
    sim::StudySource source;
    QString path; ///< the file that it belongs to; may be empty
};

using UnsavedWork = std::variant<EditedStudy, EditedPage>;

/// Edits that a program left behind when it was killed. While this value lives, no other program is offered them.
struct RecoveredWork {
    UnsavedWork work;
    QString copy; ///< the file that keeps it
    std::shared_ptr<QLockFile> lock;

    /// The file that the edits belong to; may be empty.
    QString path() const;

    /// Takes the copy away: somebody has the edits, or has said that nobody wants them.
    void forget() const;
};

/// Keeps a copy of unsaved edits in a folder, so that they outlive the program. A copy is written shortly after an edit (as a whole, beside
/// a lock that its program holds), and taken away when the work is saved or closed.
class Recovery : public QObject {
    Q_OBJECT

public:
    /// What there is to keep now; nothing: no unsaved edits.
    using Unsaved = std::function<std::optional<UnsavedWork>()>;

    /// `folder` is made where it is missing; one that cannot be written means that nothing is kept. Call `edited` after each change.
    Recovery(Unsaved unsaved, const QString& folder, QObject* parent = nullptr);

    /// Of a study, whose changes it hears of.
    Recovery(StudyDocument& document, const QString& folder, QObject* parent = nullptr);
    ~Recovery() override;

    /// What programs that are no longer running left in the folder, the newest first. A copy stays there until it is forgotten, so that it
    /// outlives this program too. Copies that cannot be read are left out, and left alone.
    static std::vector<RecoveredWork> leftBehind(const QString& folder);

    /// What is unsaved has changed, or is saved.
    void edited();

    /// Writes the copy now, if there are unsaved edits.
    void store();

    /// Where this user's copies lie: `meshwright/recovery` in XDG_STATE_HOME (~/.local/state).
    static QString defaultFolder();

    /// How long after an edit the copy is written.
    static constexpr int kDelayMilliseconds = 300;

private:
    void discard();

    Unsaved m_unsaved;
    QString m_file;
    QLockFile m_lock;
    QTimer m_timer;
};

} // namespace meshwright::ui
