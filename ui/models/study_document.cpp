// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/study_document.h"

#include "core/study/document.h"
#include "core/study/edit_text.h"
#include "core/study/program_study.h"
#include "core/support/file.h"

#include <fmt/format.h>

#include <QElapsedTimer>
#include <QFileInfo>
#include <QUndoCommand>

#include <filesystem>

namespace meshwright::ui {

namespace {

/// Edits of the same things within this time are one step of undo: a drag of a slider, letters of a number.
constexpr qint64 kMergeMilliseconds = 1000;

/// `mesh.data` of `mesh.data=8`.
QString pathOf(const QString& setting)
{
    return setting.section(QLatin1Char('='), 0, 0).trimmed();
}

/// A document without the parts that every study has is another program's: nothing is to be written into it.
Result<Done> checkIsStudy(const std::string& text, const std::string& file)
{
    const Document document = parseDocument(text, file);
    const bool hasParts = document.root.kind == DocNode::Kind::Map
        && (document.root.find("meshwright") != nullptr || document.root.find("model") != nullptr);
    if (!document.readable || hasParts)
        return Done{};
    return Problem{"MW1830", fmt::format("\"{}\" is not a study: it has neither \"meshwright\" nor \"model\"", file),
        "a study uses a model's config.json by model: {transformer: {config: config.json}}", Place{file}};
}

/// A program becomes the study that simulates it, beside its file: it is edited as any other.
sim::StudySource asStudy(sim::StudySource source)
{
    if (isProgramText(source.file, source.text)) {
        if (auto text = programStudyText(source.file, source.text)) {
            source.text = *std::move(text);
            source.file = std::filesystem::path(source.file).replace_extension(".yaml").string();
        }
    }
    return source;
}

} // namespace

class EditCommand : public QUndoCommand {
public:
    EditCommand(StudyDocument& document, sim::StudySource after, QStringList paths, const QString& what)
        : QUndoCommand(what)
        , m_document(document)
        , m_before(document.source())
        , m_after(std::move(after))
        , m_paths(std::move(paths))
    {
        m_age.start();
    }

    void undo() override { m_document.setSource(m_before); }
    void redo() override { m_document.setSource(m_after); }
    int id() const override { return 1; }

    bool mergeWith(const QUndoCommand* other) override
    {
        const auto* next = static_cast<const EditCommand*>(other);
        if (next->m_paths != m_paths || m_age.elapsed() > kMergeMilliseconds)
            return false;
        m_after = next->m_after;
        m_age.restart();
        return true;
    }

private:
    StudyDocument& m_document;
    sim::StudySource m_before;
    sim::StudySource m_after;
    QStringList m_paths; ///< what the edit is about
    QElapsedTimer m_age;
};

StudyDocument::StudyDocument(QObject* parent)
    : QObject(parent)
{
    connect(&m_undo, &QUndoStack::cleanChanged, this, [this](bool clean) { Q_EMIT modifiedChanged(!clean); });
}

QString StudyDocument::title() const
{
    if (!m_path.isEmpty())
        return QFileInfo(m_path).fileName();
    if (!m_source.file.empty() && !m_isExample)
        return tr("%1 (not saved)").arg(QFileInfo(QString::fromStdString(m_source.file)).completeBaseName());
    if (!m_source.file.empty())
        return tr("%1 (example)").arg(QFileInfo(QString::fromStdString(m_source.file)).completeBaseName());
    return tr("untitled");
}

Result<Done> StudyDocument::open(const QString& path, bool isExample)
{
    auto text = readFile(path.toStdString(), kLargestDocumentBytes);
    if (!text)
        return text.error();
    sim::StudySource source{*std::move(text), path.toStdString(), {}};
    const bool isProgram = isProgramText(source.file, source.text);
    if (const auto study = isProgram ? Result<Done>(Done{}) : checkIsStudy(source.text, source.file); !study)
        return study.error();
    m_undo.clear();
    m_isExample = isExample;
    begin(asStudy(std::move(source)), isExample || isProgram ? QString() : path);
    return Done{};
}

void StudyDocument::adopt(sim::StudySource source, const QString& path, bool isModified)
{
    m_undo.clear();
    if (isModified)
        m_undo.resetClean();
    m_isExample = false;
    begin(asStudy(std::move(source)), path);
}

/// All hear of it, also where it is the study that was open before.
void StudyDocument::begin(sim::StudySource source, const QString& path)
{
    m_path = path;
    m_onDisk = source.text;
    m_source = std::move(source);
    Q_EMIT sourceChanged();
    Q_EMIT pathChanged(m_path);
}

void StudyDocument::change(const QStringList& settings, const QString& what)
{
    sim::StudySource after = m_source;
    QStringList paths;
    for (const QString& setting : settings) {
        paths.append(pathOf(setting));
        const QString value = setting.section(QLatin1Char('='), 1);
        after.settings = withSetting(std::move(after.settings), paths.back().toStdString(), value.toStdString());
    }
    if (after != m_source)
        m_undo.push(new EditCommand(*this, std::move(after), std::move(paths), what));
}

void StudyDocument::changeText(std::string text, const QString& what)
{
    changeState({std::move(text), m_source.file, {}}, what);
}

void StudyDocument::changeState(sim::StudySource state, const QString& what)
{
    if (state != m_source)
        m_undo.push(new EditCommand(*this, std::move(state), {what}, what));
}

void StudyDocument::removeSpec(const QString& path)
{
    change({path + QLatin1Char('=')}, tr("Remove %1").arg(path));
}

Result<Done> StudyDocument::save(const QString& path)
{
    auto edited = editedText(m_source.text, m_source.file, m_source.settings);
    if (!edited)
        return edited.error();
    if (auto written = writeFileAtomically(path.toStdString(), edited->text); !written)
        return written;
    m_path = path;
    m_onDisk = edited->text;
    m_undo.setClean();
    setSource({std::move(edited->text), path.toStdString(), {}});
    Q_EMIT pathChanged(m_path);
    return Done{};
}

bool StudyDocument::isChangedOnDisk() const
{
    const auto found = readFile(m_path.toStdString(), kLargestDocumentBytes);
    return found ? *found != m_onDisk : QFileInfo::exists(m_path);
}

bool StudyDocument::reload()
{
    auto text = readFile(m_path.toStdString(), kLargestDocumentBytes);
    if (!text)
        return false;
    m_onDisk = *text;
    changeState({*std::move(text), m_source.file, m_source.settings}, tr("Reload %1").arg(title()));
    m_undo.setClean();
    return true;
}

Result<Done> StudyDocument::save()
{
    if (isChangedOnDisk())
        return Problem{"MW1829", fmt::format("another program has changed \"{}\" since it was read", m_path.toStdString()),
            "save under another name, or open the file again", Place{m_path.toStdString()}};
    return save(m_path);
}

void StudyDocument::setSource(sim::StudySource source)
{
    if (source == m_source)
        return;
    m_source = std::move(source);
    Q_EMIT sourceChanged();
}

} // namespace meshwright::ui

#include "moc_study_document.cpp"
