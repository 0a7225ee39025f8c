// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/problems_section.h"

#include "ui/study/tone_label.h"
#include "ui/theme/theme.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QPushButton>
#include <QStyleOptionFocusRect>

namespace meshwright::ui {

namespace {

constexpr std::size_t kMostRows = 30;

ColourRole toneOf(Severity severity)
{
    return severity == Severity::Error  ? ColourRole::Error
        : severity == Severity::Warning ? ColourRole::Warning
                                        : ColourRole::Accent;
}

/// A disc with a cross, a triangle with a mark, a ring with an i: told apart by shape as well as by colour.
class SeverityIcon : public QWidget {
public:
    explicit SeverityIcon(Severity severity)
        : m_severity(severity)
    {
        setFixedSize(16, 16);
    }

    void setSeverity(Severity severity)
    {
        m_severity = severity;
        update();
    }

protected:
    void paintEvent(QPaintEvent*) override
    {
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        const Theme theme = themeOf(palette());
        const QColor colour = qtColour(toneOf(m_severity), theme);
        const QColor inside = qtColour(ColourRole::Background, theme);
        painter.setPen(Qt::NoPen);
        painter.setBrush(colour);
        const QPen mark(inside, 1.8, Qt::SolidLine, Qt::RoundCap);
        if (m_severity == Severity::Error) {
            painter.drawEllipse(QRectF(1, 1, 14, 14));
            painter.setPen(mark);
            painter.drawLine(QPointF(5.5, 5.5), QPointF(10.5, 10.5));
            painter.drawLine(QPointF(10.5, 5.5), QPointF(5.5, 10.5));
        } else if (m_severity == Severity::Warning) {
            QPainterPath triangle;
            triangle.moveTo(8, 1);
            triangle.lineTo(15.2, 14.5);
            triangle.lineTo(0.8, 14.5);
            triangle.closeSubpath();
            painter.drawPath(triangle);
            painter.setPen(mark);
            painter.drawLine(QPointF(8, 6), QPointF(8, 9.5));
            painter.drawPoint(QPointF(8, 12.4));
        } else {
            painter.setBrush(Qt::NoBrush);
            painter.setPen(QPen(colour, 1.6));
            painter.drawEllipse(QRectF(1.5, 1.5, 13, 13));
            painter.drawLine(QPointF(8, 7.4), QPointF(8, 11.4));
            painter.drawPoint(QPointF(8, 4.8));
        }
    }

private:
    Severity m_severity;
};

QString textOf(const Problem& problem)
{
    return QString::fromStdString(problem.message);
}

} // namespace

/// One problem; Return and a click lead to its place.
class ProblemRow : public QWidget {
    Q_OBJECT

public:
    ProblemRow()
        : m_icon(new SeverityIcon(Severity::Error))
        , m_text(new QLabel)
        , m_remedy(new ToneLabel(ColourRole::MutedText))
        , m_fixLine(new QWidget)
        , m_fix(new QPushButton(tr("Apply fix")))
        , m_change(new ToneLabel(ColourRole::MutedText))
    {
        setFocusPolicy(Qt::StrongFocus);
        setCursor(Qt::PointingHandCursor);
        m_text->setWordWrap(true);
        m_text->setTextFormat(Qt::PlainText);
        auto* column = new QVBoxLayout;
        column->setSpacing(2);
        column->addWidget(m_text);
        column->addWidget(m_remedy);
        auto* fix = new QHBoxLayout(m_fixLine);
        fix->setContentsMargins(0, 0, 0, 0);
        fix->setSpacing(6);
        fix->addWidget(m_fix);
        fix->addWidget(m_change, 1);
        column->addWidget(m_fixLine);
        auto* line = new QHBoxLayout(this);
        line->setContentsMargins(4, 4, 4, 4);
        line->setSpacing(8);
        line->addWidget(m_icon, 0, Qt::AlignTop);
        line->addLayout(column, 1);
        connect(m_fix, &QPushButton::clicked, this, [this] { Q_EMIT fixRequested(settingList(m_problem.fixSettings)); });
    }

    void show(const Problem& problem, bool canEdit)
    {
        m_problem = problem;
        m_icon->setSeverity(problem.severity);
        const QString id = QString::fromStdString(problem.id);
        m_text->setText(breakable(id + QLatin1Char(' ') + textOf(problem)));
        m_remedy->setNote(QString::fromStdString(problem.fix), ColourRole::MutedText);
        const QStringList changes = settingList(problem.fixSettings);
        m_fixLine->setVisible(!changes.isEmpty() && canEdit);
        m_change->setText(breakable(changes.join(QLatin1Char('\n'))));
        m_fix->setAccessibleName(tr("Apply the fix of %1: %2").arg(id, changes.join(QLatin1String(", "))));
        setAccessibleName(tr("%1 %2: %3").arg(QString::fromLatin1(severityName(problem.severity)), id, textOf(problem)));
        setToolTip(QString::fromStdString(problem.rule));
    }
    using QWidget::show;

Q_SIGNALS:
    void jumpRequested(const QString& path);
    void fixRequested(const QStringList& settings);

protected:
    void mouseReleaseEvent(QMouseEvent* event) override
    {
        if (event->button() == Qt::LeftButton && rect().contains(event->pos()))
            jump();
    }

    void keyPressEvent(QKeyEvent* event) override
    {
        if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter || event->key() == Qt::Key_Space)
            jump();
        else
            QWidget::keyPressEvent(event);
    }

    void paintEvent(QPaintEvent*) override
    {
        if (!hasFocus() && !underMouse())
            return;
        QPainter painter(this);
        const Theme theme = themeOf(palette());
        painter.setPen(qtColour(hasFocus() ? ColourRole::Accent : ColourRole::Grid, theme));
        painter.setBrush(qtColour(ColourRole::Background, theme));
        painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
    }

    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }

private:
    void jump() { Q_EMIT jumpRequested(QString::fromStdString(m_problem.place.path)); }

    Problem m_problem;
    SeverityIcon* m_icon;
    QLabel* m_text;
    ToneLabel* m_remedy;
    QWidget* m_fixLine;
    QPushButton* m_fix;
    ToneLabel* m_change; ///< what the button will set
};

ProblemsSection::ProblemsSection(QWidget* parent)
    : Section(tr("Problems"), parent)
    , m_more(new ToneLabel(ColourRole::MutedText))
{
    body().addWidget(m_more);
}

void ProblemsSection::show(const std::shared_ptr<const StudyFacts>& facts)
{
    const Problems& problems = facts->problems;
    setHeading(problems.empty() ? tr("Problems") : tr("Problems (%1)").arg(problems.size()));
    const std::size_t shown = std::min(problems.size(), kMostRows);
    while (m_rows.size() < shown) {
        auto* row = new ProblemRow;
        connect(row, &ProblemRow::jumpRequested, this, &ProblemsSection::jumpRequested);
        connect(row, &ProblemRow::fixRequested, this, &Section::edited);
        body().insertWidget(static_cast<int>(m_rows.size()) + 1, row); // behind the heading
        m_rows.push_back(row);
    }
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        if (i < shown)
            m_rows[i]->show(problems[i], facts->readable);
        m_rows[i]->setVisible(i < shown);
    }
    m_more->setNote(problems.empty()      ? tr("Nothing is wrong.")
            : problems.size() > kMostRows ? tr("and %1 more").arg(problems.size() - kMostRows)
                                          : QString(),
        ColourRole::MutedText);
}

void ProblemsSection::focusFirst()
{
    if (!m_rows.empty() && !m_rows.front()->isHidden())
        m_rows.front()->setFocus();
}

} // namespace meshwright::ui

#include "problems_section.moc"

#include "moc_problems_section.cpp"
