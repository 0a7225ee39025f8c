// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <QTimer>
#include <QWidget>

#include <memory>
#include <optional>

class QLabel;
class QPlainTextEdit;

namespace meshwright::ui {

/// The study's file as text, with every edit in it. What is typed becomes the study shortly after; what is changed elsewhere appears here. A mistake is
/// underlined where it is, and said below: a study that cannot be read is repaired here.
class SourceEdit : public QWidget {
    Q_OBJECT

public:
    explicit SourceEdit(QWidget* parent = nullptr);

    /// The document as it is now. What is being typed is not replaced by itself.
    void setSource(const sim::StudySource& source);

    /// Its problems, where it is of the source that is shown. Never null.
    void setAnalysis(const std::shared_ptr<const sim::Analysis>& analysis);

    /// The first mistake that has a line of the text; nothing: there is none.
    const std::optional<Problem>& mistake() const { return m_mistake; }

    /// How long after the last letter what was typed becomes the study.
    static constexpr int kTypingMilliseconds = 400;

Q_SIGNALS:
    /// The user changed the text.
    void edited(const std::string& text);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void commit();
    void replaceWhatDiffers(const QString& text);
    void showMistake();

    sim::StudySource m_source;
    std::shared_ptr<const sim::Analysis> m_analysis;
    std::optional<Problem> m_mistake;
    bool m_isChanging = false; ///< the text changes by itself
    QTimer m_typing;
    QPlainTextEdit* m_text;
    QLabel* m_message;
};

} // namespace meshwright::ui
