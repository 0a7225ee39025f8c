// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLineEdit>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace meshwright::ui {

/// What was typed is the document's now: the line has nothing to undo by itself.
void forgetTyping(QLineEdit& line);

/// Sizes between commas, spaces, brackets or x: `4x2`, `[784, 8192, 10]`. Nothing when something else stands there.
std::optional<std::vector<std::int64_t>> sizesIn(const QString& text);

/// A line that edits one value of the document.
///
/// What is typed is checked at once; Return and leaving the line commit it when it is right, Escape goes back to the document's value. A wrong text stays
/// until it is fixed, and the document's value never replaces what is being typed.
class ValueEdit : public QLineEdit {
    Q_OBJECT

public:
    explicit ValueEdit(QWidget* parent = nullptr);

    /// What is wrong with a text; empty when nothing is.
    using Check = std::function<QString(const QString& text)>;
    void setCheck(Check check) { m_check = std::move(check); }

    /// The value that the document has now.
    void setValue(const QString& value);
    const QString& value() const { return m_value; }

Q_SIGNALS:
    /// What is wrong with the text as it stands; empty when nothing is.
    void problemChanged(const QString& problem);

    /// The user is done with another text that has nothing wrong.
    void committed(const QString& text);

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    void check();
    void finish();
    void revert();

    Check m_check;
    QString m_value;
    QString m_problem;
};

} // namespace meshwright::ui
