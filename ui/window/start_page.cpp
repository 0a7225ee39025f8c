// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/start_page.h"

#include "core/study/study.h"
#include "core/support/file.h"
#include "core/support/text.h"
#include "ui/theme/theme.h"

#include <QAbstractButton>
#include <QBoxLayout>
#include <QDir>
#include <QFileInfo>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QPushButton>
#include <QScrollArea>
#include <QStyleOption>
#include <QTextLayout>

namespace meshwright::ui {

namespace {

constexpr int kCardWidth = 300;
constexpr int kCardHeight = 128;
constexpr int kDoorHeight = 112;
constexpr int kDoorWidth = 200; ///< at least, where all stand in one row
constexpr int kGap = 12;
constexpr int kMostColumns = 4;
constexpr qsizetype kMostRecentOnPage = 4; ///< on this page; the menu has them all

/// The examples that people meet first; the rest follows by name.
const QStringList kFirst = {"notebook_mlp.yaml", "digits.yaml", "tensor_parallel.yaml", "fsdp.yaml"};

/// What a card says of an example, or of another way to begin.
struct CardText {
    QString title;
    QString description; ///< of an example: the comment that the file begins with
    QString facts; ///< "data=4 x model=2 on v5e"
};

/// The comment at the beginning of a file, as one paragraph.
QString leadingComment(const std::string& text)
{
    QStringList words;
    for (const QString& line : QString::fromStdString(text).split(QLatin1Char('\n'))) {
        if (!line.startsWith(QLatin1Char('#')))
            break;
        words << line.mid(1).trimmed();
    }
    return words.join(QLatin1Char(' '));
}

std::optional<CardText> readExample(const QString& path)
{
    const auto text = readFile(path.toStdString());
    if (!text)
        return std::nullopt;
    const auto study = readStudy(*text, path.toStdString());
    if (!study)
        return std::nullopt;
    std::vector<std::string> axes;
    for (const MeshAxis& axis : study->mesh)
        axes.push_back(fmt::format("{}={}", axis.name, axis.size));
    std::string facts = axes.empty() ? std::string("one device") : "mesh " + join(axes, ", ");
    if (study->hardware && !study->hardware->chip.empty())
        facts += ", " + study->hardware->chip;
    return CardText{QString::fromStdString(study->name), leadingComment(*text), QString::fromStdString(facts)};
}

/// A large button with a title, a paragraph and a line of facts.
class Card : public QAbstractButton {
public:
    Card(const CardText& text, int height, QWidget* parent)
        : QAbstractButton(parent)
        , m_text(text)
    {
        setText(text.title);
        setAccessibleName(text.title);
        setAccessibleDescription(text.description);
        setToolTip(QStringLiteral("<p>%1</p>").arg(text.description.toHtmlEscaped()));
        setFocusPolicy(Qt::StrongFocus);
        setCursor(Qt::PointingHandCursor);
        setAttribute(Qt::WA_Hover);
        setFixedHeight(height);
        setMinimumWidth(200);
        setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    }

    QSize sizeHint() const override { return {kCardWidth, height()}; }

protected:
    void keyPressEvent(QKeyEvent* event) override
    {
        if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter)
            click();
        else
            QAbstractButton::keyPressEvent(event);
    }

    void paintEvent(QPaintEvent*) override
    {
        const Theme theme = themeOf(palette());
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(qtColour(hasFocus() ? ColourRole::Accent : ColourRole::Grid, theme), hasFocus() ? 2.0 : 1.0));
        painter.setBrush(palette().color(isDown() ? QPalette::AlternateBase
                : underMouse()                    ? QPalette::Midlight
                                                  : QPalette::Base));
        painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 6, 6);

        const QRect inside = rect().adjusted(14, 12, -14, -12);
        QFont bold = font();
        bold.setBold(true);
        bold.setPointSizeF(font().pointSizeF() * 1.1);
        painter.setFont(bold);
        painter.setPen(palette().color(QPalette::Text));
        const QFontMetrics title(bold);
        painter.drawText(inside, Qt::AlignTop | Qt::AlignLeft, title.elidedText(m_text.title, Qt::ElideRight, inside.width()));
        painter.setFont(font());
        painter.setPen(palette().color(QPalette::PlaceholderText));
        const int facts = fontMetrics().height();
        drawParagraph(painter, inside.adjusted(0, title.height() + 4, 0, -facts - 6));
        painter.setPen(qtColour(ColourRole::Accent, theme));
        painter.drawText(
            inside, Qt::AlignBottom | Qt::AlignLeft, fontMetrics().elidedText(m_text.facts, Qt::ElideRight, inside.width()));
    }

private:
    /// As many lines as fit, the last one elided.
    void drawParagraph(QPainter& painter, const QRect& frame) const
    {
        QTextLayout layout(m_text.description, font());
        layout.beginLayout();
        const int height = fontMetrics().lineSpacing();
        for (int y = frame.top(); y + height <= frame.bottom() + 1; y += height) {
            QTextLine line = layout.createLine();
            if (!line.isValid())
                break;
            line.setLineWidth(frame.width());
            const bool last = y + 2 * height > frame.bottom() + 1;
            const QString rest = m_text.description.mid(line.textStart());
            painter.drawText(frame.left(), y + fontMetrics().ascent(),
                last ? fontMetrics().elidedText(rest, Qt::ElideRight, frame.width()) : rest.left(line.textLength()));
        }
        layout.endLayout();
    }

    CardText m_text;
};

/// Cards in rows of so many.
void lay(QGridLayout& grid, const QList<QWidget*>& cards, int columns)
{
    for (int column = 0; column < kMostColumns; ++column)
        grid.setColumnStretch(column, column < columns ? 1 : 0);
    for (qsizetype i = 0; i < cards.size(); ++i)
        grid.addWidget(cards[i], static_cast<int>(i) / columns, static_cast<int>(i) % columns);
}

QLabel* heading(const QString& text, QWidget* parent)
{
    auto* label = new QLabel(text, parent);
    QFont font = label->font();
    font.setBold(true);
    font.setPointSizeF(font.pointSizeF() * 1.15);
    label->setFont(font);
    return label;
}

QStringList orderedExamples(const QString& folder)
{
    QStringList names = QDir(folder).entryList({QStringLiteral("*.yaml")}, QDir::Files, QDir::Name);
    for (auto first = kFirst.rbegin(); first != kFirst.rend(); ++first) {
        if (names.removeOne(*first))
            names.prepend(*first);
    }
    return names;
}

} // namespace

StartPage::StartPage(const QString& examplesFolder, const QString& modelsFolder, QWidget* parent)
    : QWidget(parent)
    , m_back(new QPushButton(this))
    , m_doors(new QGridLayout)
    , m_grid(new QGridLayout)
    , m_recent(new QVBoxLayout)
    , m_recentHeading(heading(tr("Recent files"), this))
{
    auto* title = new QLabel(tr("Meshwright"), this);
    QFont large = title->font();
    large.setPointSizeF(large.pointSizeF() * 2.2);
    large.setBold(true);
    title->setFont(large);
    auto* subtitle = new QLabel(
        tr("Describe a model, a mesh and PartitionSpecs; see every layout and collective, predict the step, train it for real."),
        this);
    subtitle->setWordWrap(true);
    subtitle->setForegroundRole(QPalette::PlaceholderText);
    const auto addDoor = [this](const CardText& text) {
        auto* door = new Card(text, kDoorHeight, this);
        m_doorCards << door;
        return door;
    };
    auto* plan = addDoor({tr("Plan a model"), tr("Find the mesh and the specs that train a model fastest, or compare clusters."),
        tr("Choose a model")});
    auto* lessons = addDoor(
        {tr("Pages and lessons"), tr("Learn to predict what a sharding does, and run notebooks that use JAX."), tr("Learn")});
    auto* explain = addDoor({tr("Explain an error or a log"),
        tr("See what a message of JAX, XLA, PyTorch or NCCL means, and what to do."), tr("Paste it")});
    auto* open = addDoor({tr("Open a file"),
        tr("A study, a program, a trace, a log, a checkpoint. Files can be dropped on the window."), tr("Choose a file")});
    auto* models = new QMenu(this);
    for (const QString& name : QDir(modelsFolder).entryList({QStringLiteral("*.json")}, QDir::Files, QDir::Name)) {
        models->addAction(QFileInfo(name).completeBaseName(), this,
            [this, path = QDir(modelsFolder).filePath(name)] { Q_EMIT planRequested(path); });
    }
    models->addSeparator();
    models->addAction(tr("Open a config.json…"), this, &StartPage::openRequested);
    models->addAction(tr("Compare models and clusters"), this, &StartPage::clustersRequested);
    connect(
        plan, &QAbstractButton::clicked, this, [plan, models] { models->popup(plan->mapToGlobal(QPoint(0, plan->height()))); });
    connect(lessons, &QAbstractButton::clicked, this, &StartPage::pagesRequested);
    connect(explain, &QAbstractButton::clicked, this, &StartPage::explainRequested);
    connect(open, &QAbstractButton::clicked, this, &StartPage::openRequested);
    m_back->setObjectName(QStringLiteral("back"));
    connect(m_back, &QPushButton::clicked, this, &StartPage::backRequested);

    for (const QString& name : orderedExamples(examplesFolder)) {
        const QString path = QDir(examplesFolder).filePath(name);
        const auto text = readExample(path);
        if (!text)
            continue;
        auto* card = new Card(*text, kCardHeight, this);
        connect(card, &QAbstractButton::clicked, this, [this, path] { Q_EMIT exampleChosen(path); });
        m_examples << path;
        m_cards << card;
    }
    m_doors->setSpacing(kGap);
    m_grid->setSpacing(kGap);
    m_recent->setSpacing(2);

    auto* content = new QWidget;
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(32, 28, 32, 28);
    column->setSpacing(10);
    auto* top = new QHBoxLayout;
    auto* words = new QVBoxLayout;
    words->addWidget(title);
    words->addWidget(subtitle);
    top->addLayout(words, 1);
    top->addWidget(m_back, 0, Qt::AlignVCenter);
    column->addLayout(top);
    column->addSpacing(12);
    column->addLayout(m_doors);
    column->addSpacing(12);
    column->addWidget(m_recentHeading);
    column->addLayout(m_recent);
    column->addWidget(heading(tr("Examples"), this));
    column->addLayout(m_grid);
    column->addStretch();

    auto* scroll = new QScrollArea(this);
    scroll->setWidget(content);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* all = new QVBoxLayout(this);
    all->setContentsMargins(0, 0, 0, 0);
    all->addWidget(scroll);
    setOpenStudy({});
    setRecentFiles({});
    arrange();
}

void StartPage::setOpenStudy(const QString& title)
{
    m_back->setVisible(!title.isEmpty());
    m_back->setText(tr("Back to %1").arg(title));
}

void StartPage::setRecentFiles(const QStringList& paths)
{
    while (QLayoutItem* item = m_recent->takeAt(0)) {
        item->widget()->deleteLater();
        delete item;
    }
    m_recentHeading->setVisible(!paths.isEmpty());
    for (const QString& path : paths.mid(0, kMostRecentOnPage)) {
        auto* button = new QPushButton(
            QStringLiteral("%1   %2").arg(QFileInfo(path).fileName(), QDir::toNativeSeparators(QFileInfo(path).path())), this);
        button->setFlat(true);
        button->setStyleSheet(QStringLiteral("text-align: left; padding: 4px;"));
        connect(button, &QPushButton::clicked, this, [this, path] { Q_EMIT fileChosen(path); });
        m_recent->addWidget(button);
    }
}

void StartPage::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    arrange();
}

void StartPage::arrange()
{
    const int room = width() - 64 + kGap;
    const int columns = std::clamp(room / (kCardWidth + kGap), 1, kMostColumns);
    if (columns == m_columns)
        return;
    m_columns = columns;
    lay(*m_doors, m_doorCards, room / 4 >= kDoorWidth + kGap ? 4 : columns);
    lay(*m_grid, m_cards, columns);
}

} // namespace meshwright::ui

#include "moc_start_page.cpp"
