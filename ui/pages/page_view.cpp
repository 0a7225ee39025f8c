// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/page_view.h"

#include "core/draw/draw_layout.h"
#include "core/sharding/jax_spec.h"
#include "core/sharding/tile_assignment.h"
#include "core/study/document.h"
#include "core/support/file.h"
#include "core/support/text.h"
#include "sim/pages/page_output.h"
#include "sim/pages/trusted_pages.h"
#include "sim/pages/words_html.h"
#include "ui/widgets/elided_label.h"
#include "ui/widgets/text_picture.h"

#include <QBoxLayout>
#include <QComboBox>
#include <QDesktopServices>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QFontDatabase>
#include <QLineEdit>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QSplitter>
#include <QStackedWidget>
#include <QTextBrowser>
#include <QUrl>

#include <algorithm>
#include <utility>

namespace meshwright::ui {

namespace {

constexpr int kDrawMilliseconds = 120;
constexpr std::int64_t kMostDrawnDevices = 1024;

QString qtText(const std::string& text)
{
    return QString::fromStdString(text);
}

/// A mesh, and how an array lies on it.
struct OnMesh {
    Mesh mesh;
    TensorSharding sharding;
};

/// Reads `P('x', None) on x=4, y=2`, and `{devices=[4,2]<=[8]}` of a PositionalSharding.
std::optional<OnMesh> meshLayout(const std::string& layout, std::size_t rank)
{
    if (const std::size_t on = layout.rfind(" on "); on != std::string::npos) {
        const auto mesh = parseMesh(layout.substr(on + 4));
        const auto spec = parseSpec(layout.substr(0, on));
        const auto sharding = mesh && spec ? toTensorSharding(*spec, rank, *mesh) : Result<TensorSharding>(Problem{});
        return sharding ? std::optional(OnMesh{*mesh, *sharding}) : std::nullopt;
    }
    const auto tiles = parseTileSharding(layout);
    const auto mesh = tiles ? meshOfTiles(*tiles) : Result<Mesh>(Problem{});
    const auto sharding = mesh ? fromTiles(*tiles, rank, *mesh) : Result<NamedTiles>(Problem{});
    return sharding ? std::optional(OnMesh{*mesh, sharding->sharding}) : std::nullopt;
}

/// How an array lies that a cell made; empty where its layout is not one of a mesh. `platform` as JAX names it: cpu.
DisplayList layoutPicture(const pages::PlacedValue& value, const std::string& platform, QSize size)
{
    const auto type = parseJaxType(value.type);
    const auto on = type ? meshLayout(value.layout, type->shape.size()) : std::nullopt;
    if (!on || on->mesh.deviceCount() > kMostDrawnDevices)
        return {};
    LayoutDrawing drawing;
    drawing.arrayName = value.name;
    drawing.caption = value.layout.substr(0, value.layout.rfind(" on "));
    drawing.platform = qtText(platform).toUpper().toStdString();
    drawing.deviceColours = DeviceColours(on->mesh);
    return drawLayoutInto(
        layoutOf(type->shape, on->sharding, on->mesh), drawing, std::max(120, size.width()), std::max(80, size.height()));
}

} // namespace

PageView::PageView(Selection&, QWidget* parent)
    : View(parent)
    , m_status(new ElidedLabel(this))
    , m_machine(new QLineEdit(this))
    , m_run(new QPushButton(tr("Run the page"), this))
    , m_stop(new QPushButton(tr("Stop"), this))
    , m_saveSource(new QPushButton(tr("Save the source"), this))
    , m_save(new QPushButton(tr("Save…"), this))
    , m_asks(new QWidget(this))
    , m_question(new QLabel(m_asks))
    , m_notice(new Notice(this))
    , m_halves(new QSplitter(this))
    , m_flow(new QTextBrowser(m_halves))
    , m_side(new QStackedWidget(m_halves))
{
    if (auto all = pages::lessons())
        m_lessons = *std::move(all);
    m_status->setAccessibleName(tr("The page with its outputs"));
    m_machine->setAccessibleName(tr("Machine of the page"));
    m_machine->setPlaceholderText(tr("machine, as v5e-8"));
    m_machine->setToolTip(
        tr("The machine that the page sees, and that its times are simulated on: v3-8, h100x8. Empty: as the page says"));
    m_machine->setFixedWidth(m_machine->fontMetrics().horizontalAdvance(m_machine->placeholderText()) + 24);
    m_run->setToolTip(tr("Runs all cells in a new process"));
    m_stop->setToolTip(tr("Stops the running cells and their process"));
    m_saveSource->setToolTip(tr("Writes the edited cells into the page's file"));
    m_save->setToolTip(tr("Saves the page with its outputs as HTML, a notebook, JSON or text"));
    m_question->setWordWrap(true);
    m_question->setTextFormat(Qt::PlainText);
    auto* once = new QPushButton(tr("Run it"), m_asks);
    auto* always = new QPushButton(tr("Run and trust it"), m_asks);
    once->setObjectName(QStringLiteral("run-once"));
    always->setObjectName(QStringLiteral("run-trusted"));
    always->setToolTip(tr("You are asked again only if the file changes"));
    auto* asks = new QHBoxLayout(m_asks);
    asks->setContentsMargins(0, 0, 0, 0);
    asks->addWidget(m_question, 1);
    asks->addWidget(once);
    asks->addWidget(always);
    m_flow->setAccessibleName(tr("The page"));
    m_flow->setOpenLinks(false);
    m_flow->setMinimumSize(260, 160);
    buildSide();
    m_halves->setChildrenCollapsible(false);
    m_halves->setSizes({30'000, 20'000});

    auto* head = new QHBoxLayout;
    head->setSpacing(6);
    head->addWidget(m_status, 1);
    head->addWidget(m_machine);
    head->addWidget(m_run);
    head->addWidget(m_stop);
    head->addWidget(m_saveSource);
    head->addWidget(m_save);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addLayout(head);
    layout->addWidget(m_asks);
    layout->addWidget(m_notice);
    layout->addWidget(m_halves, 1);

    m_drawsSoon.setSingleShot(true);
    m_drawsSoon.setInterval(kDrawMilliseconds);
    connect(&m_drawsSoon, &QTimer::timeout, this, &PageView::showFlow);
    connect(m_run, &QPushButton::clicked, this, [this] {
        m_job.open(m_page); // in a new process
        runFrom(0);
    });
    connect(m_machine, &QLineEdit::editingFinished, this, &PageView::changeMachine);
    connect(m_stop, &QPushButton::clicked, &m_job, &PageJob::stop);
    connect(m_saveSource, &QPushButton::clicked, this, &PageView::saveSource);
    connect(m_save, &QPushButton::clicked, this, [this] {
        const QFileInfo page(qtText(m_page->file));
        const QString path = QFileDialog::getSaveFileName(this, tr("Save the page"),
            page.dir().filePath(page.completeBaseName() + QStringLiteral("-run.html")),
            tr("HTML (*.html);;Notebook (*.ipynb);;JSON (*.json);;Text (*.txt)"));
        if (!path.isEmpty())
            savePage(path);
    });
    connect(once, &QPushButton::clicked, this, [this] { runFrom(0); });
    connect(always, &QPushButton::clicked, this, [this] {
        if (const auto kept = pages::trust(m_page->page.text); !kept)
            m_notice->show(qtText(describe(kept.error())));
        runFrom(0);
    });
    connect(m_flow, &QTextBrowser::anchorClicked, this, [this](const QUrl& url) {
        if (url.scheme() == QLatin1String("cell"))
            choose(url.path().toULongLong());
        else if (url.scheme() == QLatin1String("lesson"))
            openLesson(url.path().toULongLong());
        else if (url.scheme() == QLatin1String("https") || url.scheme() == QLatin1String("http"))
            QDesktopServices::openUrl(url);
    });
    connect(&m_job, &PageJob::began, this, [this](std::size_t cell) {
        m_running = cell;
        showStatus();
        m_drawsSoon.start();
    });
    connect(&m_job, &PageJob::ran, this, &PageView::showCell);
    connect(&m_job, &PageJob::judged, this, &PageView::showJudgement);
    connect(&m_job, &PageJob::found, this, &PageView::showFindings);
    connect(&m_job, &PageJob::ended, this, &PageView::showEnd);
    setFocusProxy(m_flow);
    showDoors();
}

void PageView::buildSide()
{
    m_side->addWidget(buildCode());
    m_side->addWidget(buildQuestion());
    m_side->setMinimumWidth(240);
}

QWidget* PageView::buildCode()
{
    auto* code = new QWidget(m_side);
    m_title = new QLabel(code);
    m_title->setTextFormat(Qt::PlainText);
    m_source = new QPlainTextEdit(code);
    m_source->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_source->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_source->setAccessibleName(tr("Source of the cell"));
    m_source->setTabChangesFocus(true);
    m_source->setMinimumHeight(70);
    m_runCell = new QPushButton(tr("Run the cell"), code);
    m_runFrom = new QPushButton(tr("Run from here"), code);
    m_runCell->setToolTip(tr("With the variables of the cells before it"));
    m_runFrom->setToolTip(tr("This cell and all cells after it"));
    m_array = new QComboBox(code);
    m_array->setAccessibleName(tr("Array of the cell"));
    m_array->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_layout = new PictureView(code);
    m_layout->setAccessibleName(tr("How the array lies on the devices"));
    m_layout->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Ignored);
    m_layout->setMinimumSize(200, 120);
    m_layout->installEventFilter(this);

    auto* buttons = new QHBoxLayout;
    buttons->addWidget(m_runCell);
    buttons->addWidget(m_runFrom);
    buttons->addStretch();
    auto* column = new QVBoxLayout(code);
    column->setContentsMargins(6, 0, 0, 0);
    column->addWidget(m_title);
    column->addWidget(m_source, 2);
    column->addLayout(buttons);
    column->addWidget(m_array);
    column->addWidget(m_layout, 3);

    connect(m_source, &QPlainTextEdit::textChanged, this, [this] {
        m_cells[m_current].source = m_source->toPlainText().toStdString();
        for (std::size_t i = m_current; i < m_cells.size(); ++i)
            m_cells[i].isOutdated = m_cells[i].result.status != pages::CellStatus::NotRun;
        m_drawsSoon.start();
        Q_EMIT unsavedChanged();
    });
    connect(m_runCell, &QPushButton::clicked, this, [this] { m_job.hasProcess() ? runCells(m_current, m_current) : runFrom(0); });
    connect(m_runFrom, &QPushButton::clicked, this, [this] { runFrom(m_current); });
    connect(m_array, &QComboBox::currentIndexChanged, this, &PageView::showArray);
    return code;
}

QWidget* PageView::buildQuestion()
{
    auto* asking = new QWidget(m_side);
    m_asked = new QLabel(asking);
    m_asked->setWordWrap(true);
    m_answer = new QLineEdit(asking);
    m_answer->setAccessibleName(tr("Your answer"));
    m_answer->setPlaceholderText(tr("Your answer"));
    m_check = new QPushButton(tr("Check"), asking);
    m_hint = new QPushButton(tr("Hint"), asking);
    m_reveal = new QPushButton(tr("Show the answer"), asking);
    m_said = new QLabel(asking);
    m_said->setWordWrap(true);
    m_said->setTextFormat(Qt::PlainText);
    m_said->setAccessibleName(tr("Whether the answer is right"));
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(m_check);
    buttons->addWidget(m_hint);
    buttons->addWidget(m_reveal);
    buttons->addStretch();
    auto* column = new QVBoxLayout(asking);
    column->setContentsMargins(6, 0, 0, 0);
    column->addWidget(m_asked);
    column->addWidget(m_answer);
    column->addLayout(buttons);
    column->addWidget(m_said);
    column->addStretch();
    connect(m_check, &QPushButton::clicked, this, &PageView::checkAnswer);
    connect(m_answer, &QLineEdit::returnPressed, this, &PageView::checkAnswer);
    connect(m_hint, &QPushButton::clicked, this, &PageView::giveHint);
    connect(m_reveal, &QPushButton::clicked, this, &PageView::showAnswer);
    return asking;
}

void PageView::setAnalysis(std::shared_ptr<const sim::Analysis>) { }

void PageView::openPage(const QString& path)
{
    if (!mayDiscard())
        return;
    m_lesson.reset();
    read(path, false);
}

void PageView::openLesson(std::size_t number)
{
    if (!mayDiscard())
        return;
    m_lesson = number;
    read(qtText(m_lessons[number].file.string()), true); // it is ours
}

void PageView::restore(EditedPage page, std::function<void()> taken)
{
    m_lesson.reset();
    const QString path = page.path;
    read(path, false, std::move(page), std::move(taken));
}

void PageView::read(const QString& path, bool isTrusted)
{
    read(path, isTrusted, std::nullopt, [] {});
}

/// `asEdited`: the text and the cells' sources, in place of the file's.
void PageView::read(const QString& path, bool isTrusted, std::optional<EditedPage> asEdited, std::function<void()> taken)
{
    m_status->setWhole(tr("Reading %1…").arg(QFileInfo(path).fileName()));
    m_reader.start([this, path, isTrusted, asEdited = std::move(asEdited), taken = std::move(taken)](
                       const std::stop_token&) -> std::function<void()> {
        const auto fail = [this](Problems problems) -> std::function<void()> {
            return [this, problems = std::move(problems)] {
                m_page.reset();
                m_job.open(nullptr);
                m_problems = problems;
                showDoors();
                Q_EMIT unsavedChanged();
            };
        };
        const std::string file = path.toStdString();
        auto text = asEdited ? Result<std::string>(asEdited->text) : readFile(file, kLargestDocumentBytes);
        if (!text)
            return fail(text.error());
        auto page = pages::readPage(*std::move(text), file);
        if (!page)
            return fail(inFile(page.error(), file));
        auto machine = pages::machineOfPage(*page);
        if (!machine)
            return fail(inFile(machine.error(), file));
        std::vector<std::string> sources;
        if (asEdited && asEdited->sources.size() == page->cells.size())
            sources = asEdited->sources;
        const bool runs = sources.empty() && (isTrusted || pages::isTrusted(page->text)); // what was restored is read first
        auto opened = std::make_shared<const OpenPage>(OpenPage{file, *std::move(page), *std::move(machine), {}, {}});
        return [this, opened, runs, sources, taken] {
            m_fileText = opened->page.text;
            m_saved.clear();
            for (const pages::Cell& cell : opened->page.cells)
                m_saved.push_back(cell.source);
            take(opened, runs, sources);
            taken();
        };
    });
}

/// The page begins again on another machine.
void PageView::changeMachine()
{
    const std::string name = m_machine->text().trimmed().toStdString();
    if (!m_page || name == m_page->asked)
        return;
    auto machine = pages::machineOfPage(m_page->page, name);
    if (!machine) {
        m_notice->show(qtText(describe(machine.error())));
        return;
    }
    const bool hasRun = m_job.isBusy() || m_job.hasProcess();
    auto changed = std::make_shared<OpenPage>(*m_page);
    changed->machine = *std::move(machine);
    changed->asked = name;
    take(changed, hasRun || pages::isTrusted(changed->page.text), sources());
}

/// `sources`: of the cells, as they are edited; empty: as the page has them.
void PageView::take(const std::shared_ptr<const OpenPage>& page, bool isTrusted, const std::vector<std::string>& sources)
{
    m_page = page;
    m_machine->setText(qtText(page->asked));
    m_problems.clear();
    m_job.open(page);
    m_cells.clear();
    for (std::size_t i = 0; i < page->page.cells.size(); ++i)
        m_cells.push_back({sources.empty() ? page->page.cells[i].source : sources[i], {}});
    m_running.reset();
    m_next.reset();
    m_count = m_cells.size();
    if (const auto question = nextQuestion(0))
        m_count = *question + 1;
    m_question->setText(
        tr("A page runs code that its author wrote. It runs without network, without other programs and without your files."));
    m_asks->setVisible(!isTrusted);
    m_notice->show({});
    m_side->show();
    choose(0);
    m_flow->verticalScrollBar()->setValue(0);
    Q_EMIT unsavedChanged();
    if (isTrusted)
        runFrom(0);
}

std::optional<std::size_t> PageView::nextQuestion(std::size_t from) const
{
    for (std::size_t i = from; i < m_cells.size(); ++i) {
        if (m_page->page.cells[i].question && !m_cells[i].isAnswered)
            return i;
    }
    return std::nullopt;
}

void PageView::runFrom(std::size_t cell)
{
    if (!m_job.hasProcess())
        cell = 0;
    const auto question = nextQuestion(cell);
    runCells(cell, question ? *question : m_cells.size() - 1);
}

void PageView::runCells(std::size_t first, std::size_t last)
{
    if (!m_page || m_job.isBusy())
        return;
    m_asks->hide();
    m_notice->show({});
    m_problems.clear();
    std::map<std::size_t, std::string> edited;
    for (std::size_t i = 0; i < m_cells.size(); ++i) {
        if (m_cells[i].source != m_page->page.cells[i].source || m_cells[i].isOutdated)
            edited[i] = m_cells[i].source;
    }
    m_count = std::max(m_count, last + 1);
    m_job.run(first, last, edited);
    showStatus();
}

void PageView::choose(std::size_t cell)
{
    if (cell >= m_cells.size())
        return;
    m_current = cell;
    m_hints = 0;
    m_said->clear();
    m_answer->clear();
    showSide();
    showFlow();
}

void PageView::checkAnswer()
{
    if (m_answer->text().trimmed().isEmpty())
        return m_said->setText(tr("Write your answer first. Hint shows a hint."));
    if (m_job.hasProcess() && !m_job.isBusy())
        m_job.judge(m_current, m_answer->text().toStdString());
}

void PageView::giveHint()
{
    const std::vector<std::string>& hints = m_page->page.cells[m_current].question->hints;
    if (m_hints < hints.size())
        m_said->setText(tr("Hint: %1").arg(qtText(hints[m_hints++])));
    m_hint->setEnabled(m_hints < hints.size());
}

void PageView::showAnswer()
{
    m_said->setText(tr("The answer is on the page."));
    passQuestion();
}

void PageView::showJudgement(std::size_t cell, const pages::Judgement& judgement)
{
    if (cell != m_current)
        return;
    if (!judgement.isRight) {
        m_said->setText((judgement.isRead ? tr("Not so. %1") : tr("Not understood: %1.")).arg(qtText(judgement.said)));
        return;
    }
    m_said->setText(tr("Right."));
    m_cells[cell].isRight = true; // it is read beside the question, for the next one is asked at once
    if (m_lesson) {
        const auto& cells = m_page->page.cells;
        const auto number = std::count_if(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(cell) + 1,
            [](const pages::Cell& one) { return one.question.has_value(); });
        if (const auto kept = m_progress.add(m_lessons[*m_lesson], static_cast<std::size_t>(number)); !kept)
            m_notice->show(qtText(describe(kept.error())));
    }
    passQuestion();
}

/// What is behind a question is shown and run once it is answered.
void PageView::passQuestion()
{
    m_cells[m_current].isAnswered = true;
    const auto question = nextQuestion(0);
    const std::size_t last = question ? *question : m_cells.size() - 1;
    m_count = last + 1;
    if (m_current + 1 < m_cells.size() && m_job.hasProcess())
        m_next = std::pair(m_current + 1, last);
    showSide();
    if (!m_job.isBusy())
        runNext();
    m_drawsSoon.start();
}

void PageView::runNext()
{
    if (const auto next = std::exchange(m_next, std::nullopt))
        runCells(next->first, next->second);
}

void PageView::showCell(std::size_t cell, const std::shared_ptr<const pages::CellResult>& result)
{
    m_cells[cell].result = *result;
    m_cells[cell].isOutdated = false;
    m_running.reset();
    if (m_page->page.cells[cell].question && !m_cells[cell].isAnswered && cell != m_current) {
        choose(cell); // it waits for its reader
        m_flow->scrollToAnchor(cellAnchor(cell));
        m_answer->setFocus();
    } else if (cell == m_current)
        showSide();
    m_drawsSoon.start();
}

void PageView::showFindings(const PageFindings& findings)
{
    for (const auto& [cell, finding] : findings) {
        if (cell >= m_cells.size())
            continue;
        auto& known = m_cells[cell].result.findings; // a cell that did not run again has those of the run before
        if (std::none_of(
                known.begin(), known.end(), [&](const pages::PageFinding& one) { return one.message == finding.message; }))
            known.push_back(finding);
    }
    m_drawsSoon.start();
}

void PageView::showEnd(const Problems& problems)
{
    if (!problems.empty() && m_running)
        m_cells[*m_running].result.status = pages::CellStatus::Stopped;
    m_running.reset();
    m_problems = problems;
    if (!problems.empty())
        m_notice->show(qtText(describe(problems)));
    showStatus();
    showSide();
    m_drawsSoon.start();
    if (problems.empty())
        runNext();
    m_next.reset();
}

void PageView::savePage(const QString& path)
{
    pages::Page edited = m_page->page;
    for (std::size_t i = 0; i < m_cells.size(); ++i)
        edited.cells[i].source = m_cells[i].source;
    const pages::PageRun made = run();
    const auto text = pages::pageAs(
        {m_page->file, edited, m_page->machine, made}, QFileInfo(path).suffix().prepend(QLatin1Char('.')).toStdString());
    if (!text)
        return m_notice->show(
            tr("No format has the ending of %1: write .html, .ipynb, .json or .txt.").arg(QFileInfo(path).fileName()));
    const auto written = writeFileAtomically(path.toStdString(), *text);
    m_notice->show(written ? QString() : qtText(describe(written.error())), Notice::Level::Error);
}

std::vector<std::string> PageView::sources() const
{
    std::vector<std::string> sources;
    for (const ShownCell& cell : m_cells)
        sources.push_back(cell.source);
    return sources;
}

bool PageView::isEdited() const
{
    return m_page && !m_lesson && sources() != m_saved;
}

std::optional<EditedPage> PageView::unsaved() const
{
    return isEdited() ? std::optional(EditedPage{qtText(m_page->file), m_fileText, sources()}) : std::nullopt;
}

bool PageView::mayDiscard()
{
    if (!isEdited())
        return true;
    const auto answer = QMessageBox::question(this, tr("Unsaved edits"),
        tr("Save the edited cells of %1?").arg(QFileInfo(qtText(m_page->file)).fileName()),
        QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel);
    return answer == QMessageBox::Discard || (answer == QMessageBox::Save && saveSource());
}

bool PageView::saveSource()
{
    const auto text = pages::withSources(m_page->page, sources());
    const auto now = readFile(m_page->file, kLargestDocumentBytes);
    if (!text || !now || *now != m_fileText)
        return saveAsNotebook();
    if (const auto written = writeFileAtomically(m_page->file, *text); !written) {
        m_notice->show(qtText(describe(written.error())), Notice::Level::Error);
        return false;
    }
    if (pages::isTrusted(m_fileText)) // it is the reader's own edit
        (void)pages::trust(*text);
    m_fileText = *text;
    m_saved = sources();
    showStatus();
    Q_EMIT unsavedChanged();
    return true;
}

bool PageView::saveAsNotebook()
{
    const QFileInfo page(qtText(m_page->file));
    const QString path = QFileDialog::getSaveFileName(this, tr("Save the page as a notebook"),
        page.dir().filePath(page.completeBaseName() + QStringLiteral("-edited.ipynb")), tr("Notebook (*.ipynb)"));
    if (path.isEmpty())
        return false;
    m_notice->show({});
    savePage(path);
    if (m_notice->isVisibleTo(this))
        return false;
    m_saved = sources();
    showStatus();
    Q_EMIT unsavedChanged();
    return true;
}

pages::PageRun PageView::run() const
{
    pages::PageRun made;
    for (const ShownCell& cell : m_cells)
        made.cells.push_back(cell.result);
    return made;
}

void PageView::showStatus()
{
    m_run->setEnabled(m_page && !m_job.isBusy());
    m_run->setVisible(m_page != nullptr && m_asks->isHidden()); // the buttons of the question run the page too
    m_machine->setVisible(m_page != nullptr);
    m_stop->setVisible(m_job.isBusy());
    m_save->setVisible(m_page && !m_job.isBusy());
    m_saveSource->setVisible(isEdited());
    if (!m_page)
        return;
    const QString name = m_lesson ? tr("Lesson %1").arg(*m_lesson + 1) : QFileInfo(qtText(m_page->file)).fileName();
    const pages::PageRun made = run();
    const QString state = m_running ? tr("running cell %1 of %2…").arg(*m_running + 1).arg(m_cells.size())
        : m_job.isBusy()            ? tr("starting…")
                                    : qtText(pages::summaryText({m_page->file, m_page->page, m_page->machine, made}));
    m_status->setWhole(tr("%1, on %2: %3")
                           .arg(name,
                               tr("%1 %2 devices")
                                   .arg(m_page->machine.devices)
                                   .arg(qtText(m_page->machine.kind == "cpu" ? "CPU" : m_page->machine.kind)),
                               state));
}

void PageView::showSide()
{
    const pages::Cell& cell = m_page->page.cells[m_current];
    m_side->setCurrentIndex(cell.question ? 1 : 0);
    const bool isFree = !m_job.isBusy();
    if (cell.question) {
        const bool isOpen = !m_cells[m_current].isAnswered;
        m_asked->setText(qtText(pages::wordsHtml(cell.question->text)));
        m_answer->setEnabled(isOpen);
        m_check->setEnabled(isOpen && isFree && m_job.hasProcess());
        m_hint->setEnabled(isOpen && m_hints < cell.question->hints.size());
        m_reveal->setEnabled(isOpen && isFree && m_job.hasProcess());
        return;
    }
    m_title->setText(tr("Cell %1").arg(m_current + 1));
    if (const QString source = qtText(m_cells[m_current].source); m_source->toPlainText() != source) {
        const QSignalBlocker blocker(m_source);
        m_source->setPlainText(source);
    }
    m_runCell->setEnabled(isFree);
    m_runFrom->setEnabled(isFree);
    {
        const QSignalBlocker blocker(m_array);
        const QString before = m_array->currentText();
        m_array->clear();
        for (const pages::PlacedValue& value : m_cells[m_current].result.values)
            m_array->addItem(tr("%1: %2, %3").arg(qtText(value.name), qtText(value.type), qtText(value.layout)));
        m_array->setCurrentIndex(std::max(0, m_array->findText(before)));
    }
    m_array->setVisible(m_array->count() > 0);
    m_layout->setVisible(m_array->count() > 0);
    showArray();
}

void PageView::showArray()
{
    const auto& values = m_cells[m_current].result.values;
    const auto index = static_cast<std::size_t>(std::max(0, m_array->currentIndex()));
    DisplayList picture;
    if (index < values.size())
        picture = layoutPicture(values[index], m_page->machine.platform, m_layout->size());
    m_layout->setPicture(std::move(picture));
    m_layout->setMinimumSize(200, 120);
}

void PageView::showFlow()
{
    if (!m_page)
        return;
    showStatus();
    const int at = m_flow->verticalScrollBar()->value();
    m_flow->setHtml(pageFlowHtml({m_page->page, m_cells, m_count, m_running, m_current}, theme()));
    m_flow->verticalScrollBar()->setValue(at);
}

/// What there is to open, where nothing is.
void PageView::showDoors()
{
    m_asks->hide();
    m_side->hide();
    m_notice->show(m_problems.empty() ? QString() : qtText(describe(m_problems)));
    showStatus();
    m_status->setWhole(tr("Pages run here on virtual devices, without JAX and without an accelerator."));
    QString html = QStringLiteral("<h3>%1</h3><p>%2</p>")
                       .arg(tr("Open a page"),
                           tr("Open a notebook, a Markdown page or a script that uses JAX (Ctrl+O), or drop it on the window. "
                              "Its cells run unchanged, "
                              "and beside each are its output, where its arrays lie, its collectives, times and what is wrong."));
    if (!m_lessons.empty())
        html += QStringLiteral("<h3>%1</h3>").arg(tr("Lessons"));
    for (std::size_t i = 0; i < m_lessons.size(); ++i)
        html += QStringLiteral("<p>%1. <a href='lesson:%2' style='color: %3'>%4</a> <span style='color: %5'>%6</span></p>")
                    .arg(i + 1)
                    .arg(i)
                    .arg(colour(ColourRole::Accent).name(), qtText(m_lessons[i].title).toHtmlEscaped(),
                        colour(ColourRole::MutedText).name(),
                        tr("%1 of %2 questions answered").arg(m_progress.done(m_lessons[i])).arg(m_lessons[i].questions()));
    m_flow->setHtml(html);
}

bool PageView::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_layout && event->type() == QEvent::Resize && m_page)
        showArray();
    return View::eventFilter(watched, event);
}

void PageView::changeEvent(QEvent* event)
{
    View::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && m_flow != nullptr)
        m_page ? showFlow() : showDoors();
}

DisplayList PageView::picture() const
{
    const pages::PageRun made = run();
    return textPicture(
        "a page", m_page ? pages::pageText({m_page->file, m_page->page, m_page->machine, made}) : std::string("no page is open"));
}

QString PageView::command() const
{
    if (m_lesson)
        return QStringLiteral("meshwright lesson %1").arg(*m_lesson + 1);
    const QString machine
        = m_page && !m_page->asked.empty() ? QStringLiteral(" --hw ") + shellQuoted(qtText(m_page->asked)) : QString();
    return QStringLiteral("meshwright open ") + (m_page ? shellQuoted(qtText(m_page->file)) : QStringLiteral("page.ipynb"))
        + machine;
}

} // namespace meshwright::ui

#include "moc_page_view.cpp"
