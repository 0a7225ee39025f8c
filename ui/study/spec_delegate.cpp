// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/spec_delegate.h"

#include "ui/study/spec_edit.h"
#include "ui/study/spec_model.h"
#include "ui/study/tone_label.h"
#include "ui/theme/theme.h"

#include <QAbstractItemView>
#include <QApplication>
#include <QPainter>
#include <QPointer>
#include <QPushButton>
#include <QScrollArea>
#include <QTextLayout>
#include <QVBoxLayout>

namespace meshwright::ui {

namespace {

constexpr int kTextMargin = 4;

/// A plate with a border in the colour of errors.
class MessageFrame : public QFrame {
public:
    using QFrame::QFrame;

protected:
    void paintEvent(QPaintEvent*) override
    {
        QPainter painter(this);
        const Theme theme = themeOf(palette());
        painter.setPen(qtColour(ColourRole::Error, theme));
        painter.setBrush(qtColour(ColourRole::Background, theme));
        painter.drawRect(rect().adjusted(0, 0, -1, -1));
    }
};

/// One line of text, drawn from the left, with formats; what does not fit is cut off.
void drawLine(
    QPainter& painter, const QRect& rect, const QString& text, const QFont& font, const QList<QTextLayout::FormatRange>& formats)
{
    QTextLayout layout(text, font, painter.device());
    layout.setFormats(formats);
    layout.beginLayout();
    QTextLine line = layout.createLine();
    if (line.isValid()) {
        line.setNumColumns(static_cast<int>(text.size()));
        line.setPosition({0.0, 0.0});
    }
    layout.endLayout();
    if (!line.isValid())
        return;
    painter.save();
    painter.setClipRect(rect);
    layout.draw(&painter, {static_cast<qreal>(rect.left()), rect.top() + (rect.height() - line.height()) / 2});
    painter.restore();
}

} // namespace

SpecDelegate::SpecDelegate(QAbstractItemView& view)
    : QStyledItemDelegate(&view)
    , m_view(view)
    , m_message(new MessageFrame(view.parentWidget()))
    , m_text(new ToneLabel(ColourRole::Error))
    , m_use(new QPushButton)
{
    m_message->setObjectName(QStringLiteral("specMessage"));
    m_use->setFocusPolicy(Qt::NoFocus); // the line keeps the keyboard
    auto* column = new QVBoxLayout(m_message);
    column->setContentsMargins(8, 6, 8, 6);
    column->setSpacing(6);
    column->addWidget(m_text);
    column->addWidget(m_use, 0, Qt::AlignLeft);
    m_message->hide();
}

void SpecDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const
{
    const auto& model = static_cast<const SpecModel&>(*index.model());
    const ArrayFacts* array = model.arrayAt(index);
    if (array == nullptr) {
        QStyledItemDelegate::paint(painter, option, index);
        return;
    }
    QStyleOptionViewItem plain = option;
    initStyleOption(&plain, index);
    plain.text.clear();
    const QStyle* style = option.widget != nullptr ? option.widget->style() : QApplication::style();
    style->drawControl(QStyle::CE_ItemViewItem, &plain, painter, option.widget);

    const Theme theme = themeOf(option.palette);
    const bool selected = option.state.testFlag(QStyle::State_Selected);
    const QString text = QString::fromStdString(array->spec);
    const QRect rect = option.rect.adjusted(kTextMargin, 0, -kTextMargin, 0);
    const bool fits = option.fontMetrics.horizontalAdvance(text) <= rect.width();
    painter->setPen(selected ? option.palette.color(QPalette::HighlightedText)
                             : qtColour(array->isOwn ? ColourRole::Text : ColourRole::MutedText, theme));
    const QColor wrong = selected ? option.palette.color(QPalette::HighlightedText) : qtColour(ColourRole::Error, theme);
    const bool shortened = !fits && array->problems.empty();
    drawLine(*painter, rect, shortened ? option.fontMetrics.elidedText(text, Qt::ElideRight, rect.width()) : text, option.font,
        problemFormats(text, array->problems, wrong));
}

QWidget* SpecDelegate::createEditor(QWidget* parent, const QStyleOptionViewItem&, const QModelIndex& index) const
{
    const auto& model = static_cast<const SpecModel&>(*index.model());
    const ArrayFacts* array = model.arrayAt(index);
    if (array == nullptr)
        return nullptr;
    auto* editor = new SpecEdit(parent);
    editor->setAccessibleName(tr("Spec of %1").arg(QString::fromStdString(array->array.name)));
    editor->setSubject(array->array, model.facts()->shown.mesh);
    connect(editor, &SpecEdit::problemsChanged, this, [this, editor] { showMessage(*editor); });
    connect(editor, &QObject::destroyed, m_message, &QWidget::hide);
    connect(m_use, &QPushButton::clicked, editor, [this, editor] {
        editor->setText(editor->corrected());
        editor->setModified(true);
    });
    return editor;
}

void SpecDelegate::setEditorData(QWidget* editor, const QModelIndex& index) const
{
    auto& line = static_cast<SpecEdit&>(*editor);
    const ArrayFacts* array = static_cast<const SpecModel&>(*index.model()).arrayAt(index);
    if (array == nullptr || line.isModified())
        return; // what is being typed stays
    const QString text = QString::fromStdString(array->spec);
    line.setText(array->isOwn || parseSpec(array->spec) ? text : QString());
    line.selectAll();
}

void SpecDelegate::setModelData(QWidget* editor, QAbstractItemModel* model, const QModelIndex& index) const
{
    auto& line = static_cast<SpecEdit&>(*editor);
    if (line.isModified())
        model->setData(index, line.text(), Qt::EditRole);
}

void SpecDelegate::updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option, const QModelIndex&) const
{
    // As wide as the table allows: a spec is longer than its column.
    const int right = m_view.viewport()->width();
    const int height = std::max(option.rect.height(), editor->sizeHint().height());
    const int top = std::clamp(option.rect.center().y() - height / 2, 0, std::max(0, m_view.viewport()->height() - height));
    editor->setGeometry(option.rect.left(), top, right - option.rect.left(), height);
    showMessage(static_cast<SpecEdit&>(*editor));
}

QSize SpecDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const
{
    return {QStyledItemDelegate::sizeHint(option, index).width(), option.fontMetrics.height() + 6};
}

void SpecDelegate::showMessage(SpecEdit& editor) const
{
    if (editor.problems().empty() || !editor.isModified()) {
        m_message->hide();
        return;
    }
    const Problem& problem = editor.problems().front().problem;
    QString text = QString::fromStdString(problem.message);
    const QString corrected = editor.corrected();
    if (corrected.isEmpty() && !problem.fix.empty())
        text += QLatin1Char('\n') + QString::fromStdString(problem.fix);
    m_text->setText(text);
    m_use->setText(tr("Use %1").arg(corrected));
    m_use->setVisible(!corrected.isEmpty());

    QWidget* over = m_message->parentWidget();
    const QRect around = over->rect();
    const QPoint below = editor.mapTo(over, QPoint(0, editor.height()));
    constexpr int kGap = 2;
    const int width = around.width();
    m_message->ensurePolished();
    m_message->layout()->activate();
    const int height = m_message->layout()->totalHeightForWidth(width);
    int top = below.y() + kGap;
    if (top + height > around.bottom())
        top = below.y() - editor.height() - kGap - height;
    m_message->setGeometry(around.left(), std::max(0, top), width, height);
    m_message->show();
    m_message->raise();
    for (QWidget* outer = over; outer != nullptr; outer = outer->parentWidget()) {
        if (auto* scroll = qobject_cast<QScrollArea*>(outer))
            scroll->ensureWidgetVisible(m_message, 0, 8);
    }
}

} // namespace meshwright::ui

#include "moc_spec_delegate.cpp"
