// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/gspmd.h"
#include "tests/goldens/op_json.h"
#include "tests/test_class.h"
#include "tests/tile_placement.h"

#include <array>

namespace tst_golden_gspmd {

namespace {

using namespace meshwright;
using namespace meshwright::goldens;
using namespace meshwright::tests;

/// `size=3x2 stride=2x1 pad=1_1x0_1`: the numbers behind a word, by dimension; one for each dimension of `rank` when it is not there.
std::vector<std::vector<std::int64_t>> windowNumbers(
    const std::string& window, const std::string& word, std::size_t rank, const std::vector<std::int64_t>& otherwise)
{
    const std::size_t at = window.find(word + "=");
    if (at == std::string::npos)
        return std::vector<std::vector<std::int64_t>>(rank, otherwise);
    const std::size_t from = at + word.size() + 1;
    std::vector<std::vector<std::int64_t>> numbers(1);
    std::string digits;
    for (const char c : window.substr(from, window.find(' ', from) - from) + "x") {
        if (c != 'x' && c != '_') {
            digits += c;
            continue;
        }
        numbers.back().push_back(std::stoll(digits));
        digits.clear();
        if (c == 'x')
            numbers.emplace_back();
    }
    numbers.pop_back();
    return numbers;
}

std::string flat(const std::vector<std::vector<std::int64_t>>& numbers)
{
    std::vector<std::int64_t> all;
    for (const auto& dim : numbers)
        all.insert(all.end(), dim.begin(), dim.end());
    return fmt::format("{}", fmt::join(all, ", "));
}

/// `b0f_i0o->b0f` as `[b, 0, f]x[i, 0, o]->[b, 0, f]`.
std::string dimNumbers(std::string labels)
{
    std::string text = "[";
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (labels[i] == '_') {
            text += "]x[";
        } else if (labels[i] == '-') {
            text += "]->[";
            ++i;
        } else {
            text += text.back() == '[' ? "" : ", ";
            text += labels[i];
        }
    }
    return text + "]";
}

/// The op between copies of its operands and a copy of its result, as XLA's tests have it: what is given is what the others say.
std::string programText(const Json& json)
{
    auto op = json.at("op").get<std::string>();
    const Json attrs = json.value("attrs", Json::object());
    std::vector<TensorType> types;
    std::vector<std::string> names;
    std::vector<std::string> arguments;
    std::string body;
    for (const Json& operand : json.at("operands")) {
        types.push_back(*goldens::typeOf(operand));
        const std::size_t i = names.size();
        arguments.push_back(fmt::format("%arg{}: {}{}", i, tensorText(types.back()),
            operand.at("hlo").is_null() ? "" : fmt::format(" {{mhlo.sharding = \"{}\"}}", operand.at("hlo").get<std::string>())));
        names.push_back(fmt::format("%copy{}", i));
        body += fmt::format("%copy{} = stablehlo.{} %arg{} : {}\n", i, types.back().dtype == DType::Pred ? "not" : "abs", i,
            tensorText(types.back()));
    }
    const TensorType result = *goldens::typeOf(json.at("result"));
    const auto scalar = [&] {
        names.push_back("%start");
        types.push_back({types.front().dtype, {}});
        body += startText("%start", types.back());
    };
    Json own = Json::object();
    if (op == "copy") {
        op = "abs";
    } else if (op == "broadcast") {
        op = "broadcast_in_dim";
        own["dims"] = attrs.at("dims");
    } else if (op == "pad") {
        scalar();
        std::array<std::vector<std::int64_t>, 3> sizes;
        for (const Json& dim : attrs.at("padding")) {
            for (std::size_t i = 0; i < 3; ++i)
                sizes[i].push_back(dim.at(i));
        }
        own = {{"low", sizes[0]}, {"high", sizes[1]}, {"interior", sizes[2]}};
    } else if (op == "reduce") {
        scalar();
        own["dimensions"] = attrs.at("dimensions");
    } else if (op == "reduce_window") {
        scalar();
        const auto window = attrs.at("window").get<std::string>();
        const std::size_t rank = types.front().shape.size();
        own = {{"window_dimensions", fmt::format("array<i64: {}>", flat(windowNumbers(window, "size", rank, {1})))},
            {"window_strides", fmt::format("array<i64: {}>", flat(windowNumbers(window, "stride", rank, {1})))}};
        std::vector<std::string> rows;
        for (const auto& dim : windowNumbers(window, "pad", rank, {0, 0}))
            rows.push_back(fmt::format("[{}]", fmt::join(dim, ", ")));
        own["padding"] = fmt::format("dense<[{}]> : tensor<{}x2xi64>", fmt::join(rows, ", "), rank);
    } else if (op == "convolution") {
        const auto window = attrs.at("window").get<std::string>();
        const std::size_t rank = types.front().shape.size() - 2;
        std::vector<std::string> pads;
        for (const auto& dim : windowNumbers(window, "pad", rank, {0, 0}))
            pads.push_back(fmt::format("[{}]", fmt::join(dim, ", ")));
        std::vector<std::string> reversed;
        for (const auto& dim : windowNumbers(window, "rhs_reversal", rank, {0}))
            reversed.emplace_back(dim.front() != 0 ? "true" : "false");
        own = {{"dim_numbers", dimNumbers(attrs.at("dim_labels").get<std::string>())},
            {"window",
                fmt::format("{{stride = [{}], pad = [{}], lhs_dilate = [{}], rhs_dilate = [{}], reverse = [{}]}}",
                    flat(windowNumbers(window, "stride", rank, {1})), fmt::join(pads, ", "),
                    flat(windowNumbers(window, "lhs_dilate", rank, {1})), flat(windowNumbers(window, "rhs_dilate", rank, {1})),
                    fmt::join(reversed, ", "))},
            {"batch_group_count", fmt::format("{} : i64", attrs.value("batch_group_count", 1))},
            {"feature_group_count", fmt::format("{} : i64", attrs.value("feature_group_count", 1))}};
    } else {
        own = attrs;
        const std::size_t arrays = op == "dynamic_slice" ? 1 : op == "dynamic_update_slice" ? 2 : 0;
        for (std::size_t dim = 0; names.size() == arrays + dim && dim < types.front().shape.size(); ++dim) { // no case names them
            names.push_back(fmt::format("%start{}", dim));
            types.push_back({DType::S32, {}});
            body += startText(names.back(), types.back());
        }
    }
    body += fmt::format("%result = {}\n", opText(op, own, Json(), names, types, {result}));
    const Json& given = json.at("result").at("hlo");
    body += fmt::format("%out = stablehlo.abs %result {}: {}\n",
        given.is_null() ? "" : fmt::format("{{mhlo.sharding = \"{}\"}} ", given.get<std::string>()), tensorText(result));
    return fmt::format("func.func @main({}) -> {} {{\n{}return %out : {}\n}}\n", fmt::join(arguments, ", "), tensorText(result),
        body, tensorText(result));
}

Outcome run(const Json& json)
{
    const std::string text = programText(json);
    auto program = readProgram(text, "case.mlir");
    if (!program)
        return failed(describe(program.error()) + "\n" + text);
    const Function& function = program->functions.front();
    auto annotations = tileAnnotations(function, program->meshes);
    if (!annotations)
        return failed(describe(annotations.error()));
    const TilePropagation found = propagateTiles(function, *std::move(annotations), json.value("is_spmd", true));
    const auto target = json.at("expect").at("target").get<std::string>();
    // The returned copy reads the op's result; the copies of the operands are the first ops.
    const ValueId result = function[function[function.results().front()].producer].operands.front();
    const ValueId value = target == "result"
        ? result
        : function[function[result].producer].operands.at(static_cast<std::size_t>(std::stoi(target.substr(7))));
    const auto& sharding = found.shardings[value.at()];
    const auto expected = parseTileSharding(json.at("expect").at("hlo").get<std::string>());
    if (!expected)
        return failed(describe(expected.error()));
    if (sharding && samePlacement(*sharding, *expected))
        return passed();
    return same(target, sharding ? tileText(*sharding) : std::string("none"), tileText(*expected));
}

} // namespace

class TestGoldenGspmd : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cases_data() { m_file.addRows(); }
    void cases() { settleCase(m_file, run); }
    void cleanupTestCase() { m_file.printSummary(); }

private:
    GoldenFile m_file{"propagation_gspmd.json"};
};

MESHWRIGHT_TEST(TestGoldenGspmd)

} // namespace tst_golden_gspmd

#include "tst_golden_gspmd.moc"
