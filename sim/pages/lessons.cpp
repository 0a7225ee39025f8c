// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/pages/lessons.h"

#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/resources.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>

namespace meshwright::pages {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::size_t Lesson::questions() const
{
    return static_cast<std::size_t>(
        std::count_if(page.cells.begin(), page.cells.end(), [](const Cell& cell) { return cell.question.has_value(); }));
}

Result<std::vector<Lesson>> lessons()
{
    const auto folder = findResource("lessons");
    if (!folder)
        return folder.error();
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(*folder))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<Lesson> all;
    for (const fs::path& file : files) {
        auto text = readFile(file);
        if (!text)
            return text.error();
        auto page = readPage(*std::move(text), file.string());
        if (!page)
            return inFile(page.error(), file.string());
        const std::size_t heading = page->text.find("# ");
        const std::string title
            = heading == std::string::npos ? "" : page->text.substr(heading + 2, page->text.find('\n', heading) - heading - 2);
        all.push_back({file.stem().string(), title, file, *std::move(page)});
    }
    return all;
}

LessonProgress::LessonProgress()
{
    const char* data = std::getenv("XDG_DATA_HOME");
    const char* home = std::getenv("HOME");
    if (data != nullptr && *data == '/')
        m_file = fs::path(data) / "meshwright" / "lessons.json";
    else if (home != nullptr && *home == '/')
        m_file = fs::path(home) / ".local" / "share" / "meshwright" / "lessons.json";
    if (m_file.empty() || !fs::exists(m_file))
        return;
    const auto text = readFile(m_file);
    const Json read = text ? parsedJson(*text) : Json();
    if (!read.is_object())
        return;
    for (const auto& [lesson, numbers] : read.items()) {
        for (const Json& number : numbers) {
            if (number.is_number_unsigned())
                m_done[lesson].insert(number.get<std::size_t>());
        }
    }
}

std::size_t LessonProgress::done(const Lesson& lesson) const
{
    const auto found = m_done.find(lesson.name);
    return found == m_done.end() ? 0 : std::min(found->second.size(), lesson.questions());
}

Result<Done> LessonProgress::add(const Lesson& lesson, std::size_t question)
{
    if (!m_done[lesson.name].insert(question).second || m_file.empty())
        return Done{};
    Json written = Json::object();
    for (const auto& [name, numbers] : m_done)
        written[name] = numbers;
    std::error_code error;
    fs::create_directories(m_file.parent_path(), error);
    return writeFileAtomically(m_file, jsonText(written));
}

} // namespace meshwright::pages
