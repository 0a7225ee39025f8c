// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/prove.h"

#include "core/partition/partition.h"
#include "core/text/program_text.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <QDir>
#include <QFile>

namespace tst_prove {

using namespace meshwright;

/// Programs that are proved, and what is said of those that are wrong.
class TestProve : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void examplesAreProved_data();
    void examplesAreProved();
    void faultsAreRejected_data();
    void faultsAreRejected();
    void programsOfOthersAreRejected();
};

namespace {

std::string textOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : std::string();
}

std::string whyNot(const Proof& proof)
{
    std::string text;
    for (const FunctionProof& function : proof.functions) {
        for (const ProofObstacle& obstacle : function.obstacles)
            text += fmt::format("{} {} {}: {}\n", function.name, obstacle.opName, obstacle.value, obstacle.reason);
    }
    return text;
}

} // namespace

void TestProve::examplesAreProved_data()
{
    QTest::addColumn<QString>("path");
    const QDir examples(QString(MESHWRIGHT_SOURCE_DIR) + "/resources/examples");
    for (const QString& name : examples.entryList({"*.mlir"}, QDir::Files, QDir::Name))
        QTest::newRow(qPrintable(name)) << examples.filePath(name);
}

void TestProve::examplesAreProved()
{
    QFETCH(QString, path);
    const auto program = readProgram(textOf(path), path.toStdString());
    QVERIFY(program);
    if (program->meshes.empty())
        QSKIP("it has no mesh");
    const auto made = propagateAndPartition(*program);
    QVERIFY2(made, made ? "" : made.error().front().message.c_str());
    const Proof proof = prove(made->propagated, made->device);
    QVERIFY2(proof.isProved(), whyNot(proof).c_str());
}

namespace {

/// A program, how devices compute it, and a fault that a parallel implementation of it had: a line of the device program in place of another.
struct FaultyPair {
    const char* name;
    const char* signature; ///< arguments and results of the source
    const char* source; ///< its ops
    const char* localSignature; ///< the same of one device
    const char* device;
    const char* right; ///< a part of `device`, and ..
    const char* wrong; ///< .. what stands in its place
    const char* op; ///< that the message names; empty: the result
};

#define S(dims) "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [" dims "]>]>}"
#define A(dims) "{sdy.sharding = #sdy.sharding<@mesh, [" dims "]>}"

// The faults are those of published issues of Megatron-LM, DeepSpeed, torchtitan, nnScaler and JAX, in small programs of our own.
constexpr FaultyPair kPairs[] = {
    {"row-parallel product that is not reduced",
        "(%x: tensor<8x16xf32> " A("{}, {\"t\"}") ", %w: tensor<16x4xf32> " A("{\"t\"}, {}") ") -> (tensor<8x4xf32> " A(
            "{}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "return %0 : tensor<8x4xf32>",
        "(%x: tensor<8x8xf32> " A("{}, {\"t\"}") ", %w: tensor<8x4xf32> " A("{\"t\"}, {}") ") -> (tensor<8x4xf32> " A(
            "{}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>\n"
        "return %1 : tensor<8x4xf32>",
        "return %1", "return %0", "dot_general"},
    {"row-parallel product that is reduced over the data axis",
        "(%x: tensor<8x16xf32> " A("{}, {\"t\"}") ", %w: tensor<16x4xf32> " A("{\"t\"}, {}") ") -> (tensor<8x4xf32> " A(
            "{}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "return %0 : tensor<8x4xf32>",
        "(%x: tensor<8x8xf32> " A("{}, {\"t\"}") ", %w: tensor<8x4xf32> " A("{\"t\"}, {}") ") -> (tensor<8x4xf32> " A(
            "{}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>\n"
        "return %1 : tensor<8x4xf32>",
        "sdy.all_reduce {\"t\"}", "sdy.all_reduce {\"d\"}", "all_reduce"},
    {"bias that every rank adds before the reduction",
        "(%x: tensor<8x16xf32> " A("{}, {\"t\"}") ", %w: tensor<16x4xf32> " A("{\"t\"}, {}") ", %b: tensor<8x4xf32> " A(
            "{}, {}") ") -> (tensor<8x4xf32> " A("{}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "%1 = stablehlo.add %0, %b : tensor<8x4xf32>\n"
        "return %1 : tensor<8x4xf32>",
        "(%x: tensor<8x8xf32> " A("{}, {\"t\"}") ", %w: tensor<8x4xf32> " A("{\"t\"}, {}") ", %b: tensor<8x4xf32> " A(
            "{}, {}") ") -> (tensor<8x4xf32> " A("{}, {}") ")",
        "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> "
        "tensor<8x4xf32>\n"
        "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>\n%2 = stablehlo.add %1, %b : "
        "tensor<8x4xf32>\n"
        "return %2 : tensor<8x4xf32>",
        "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>\n%2 = stablehlo.add %1, %b : "
        "tensor<8x4xf32>\n",
        "%1 = stablehlo.add %0, %b : tensor<8x4xf32>\n%2 = sdy.all_reduce {\"t\"} %1 out_sharding=<@mesh, [{}, {}]> : "
        "tensor<8x4xf32>\n",
        "add"},
    {"gradient of a norm's scale that is not reduced over the ranks that split the sequence",
        "(%g: tensor<8x16xf32> " A("{\"t\"}, {}") ") -> (tensor<16xf32> " A("{}") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x16xf32>, tensor<f32>) -> "
        "tensor<16xf32>\n"
        "return %0 : tensor<16xf32>",
        "(%g: tensor<4x16xf32> " A("{\"t\"}, {}") ") -> (tensor<16xf32> " A("{}") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x16xf32>, tensor<f32>) -> "
        "tensor<16xf32>\n"
        "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}]> : tensor<16xf32>\n"
        "return %1 : tensor<16xf32>",
        "return %1", "return %0", "reduce"},
    {"gradient that is summed twice under context parallelism",
        "(%g: tensor<8x16xf32> " A("{\"t\"}, {}") ") -> (tensor<16xf32> " A("{}") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x16xf32>, tensor<f32>) -> "
        "tensor<16xf32>\n"
        "return %0 : tensor<16xf32>",
        "(%g: tensor<4x16xf32> " A("{\"t\"}, {}") ") -> (tensor<16xf32> " A("{}") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x16xf32>, tensor<f32>) -> "
        "tensor<16xf32>\n"
        "%1 = sdy.all_reduce {\"t\"} %0 out_sharding=<@mesh, [{}]> : tensor<16xf32>\n"
        "return %1 : tensor<16xf32>",
        "return %1", "%2 = sdy.all_reduce {\"t\"} %1 out_sharding=<@mesh, [{}]> : tensor<16xf32>\nreturn %2", "all_reduce"},
    {"rows of a rotary table that every rank takes from the beginning",
        "(%table: tensor<8x4xf32> " A("{}, {}") ") -> (tensor<8x4xf32> " A("{\"t\"}, {}") ")",
        "%0 = stablehlo.cosine %table : tensor<8x4xf32>\nreturn %0 : tensor<8x4xf32>",
        "(%table: tensor<8x4xf32> " A("{}, {}") ") -> (tensor<4x4xf32> " A("{\"t\"}, {}") ")",
        "%0 = sdy.all_slice [{\"t\"}, {}] %table out_sharding=<@mesh, [{\"t\"}, {}]> : (tensor<8x4xf32>) -> tensor<4x4xf32>\n"
        "%1 = stablehlo.cosine %0 " S("{\"t\"}, {}") " : tensor<4x4xf32>\nreturn %1 : tensor<4x4xf32>",
        "sdy.all_slice [{\"t\"}, {}] %table out_sharding=<@mesh, [{\"t\"}, {}]> : (tensor<8x4xf32>) -> tensor<4x4xf32>",
        "stablehlo.slice %table [0:4, 0:4] " S("{\"t\"}, {}") " : (tensor<8x4xf32>) -> tensor<4x4xf32>", "slice"},
    {"random bits of a piece of the state", "(%k: tensor<2xui64> " A("{\"t\"}") ") -> (tensor<4xui32> " A("{}") ")",
        "%n, %b = stablehlo.rng_bit_generator %k, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)\n"
        "return %b : tensor<4xui32>",
        "(%k: tensor<1xui64> " A("{\"t\"}") ") -> (tensor<4xui32> " A("{}") ")",
        "%0 = sdy.all_gather [{\"t\"}] %k out_sharding=<@mesh, [{}]> : (tensor<1xui64>) -> tensor<2xui64>\n"
        "%n, %b = stablehlo.rng_bit_generator %0, algorithm = THREE_FRY {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>, "
        "<@mesh, [{}]>]>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)\nreturn %b : tensor<4xui32>",
        "%0, algorithm = THREE_FRY {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{}]>]>} : (tensor<2xui64>) "
        "-> "
        "(tensor<2xui64>,",
        "%k, algorithm = THREE_FRY {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"t\"}]>, <@mesh, [{}]>]>} : "
        "(tensor<1xui64>) "
        "-> (tensor<1xui64>,",
        "stablehlo.rng_bit_generator"},
    {"result that is split over another axis than it is declared",
        "(%x: tensor<8xf32> " A("{}") ") -> (tensor<8xf32> " A("{\"t\"}") ")",
        "%0 = stablehlo.cosine %x : tensor<8xf32>\nreturn %0 : tensor<8xf32>",
        "(%x: tensor<8xf32> " A("{}") ") -> (tensor<4xf32> " A("{\"t\"}") ")",
        "%0 = sdy.all_slice [{\"t\"}] %x out_sharding=<@mesh, [{\"t\"}]> : (tensor<8xf32>) -> tensor<4xf32>\n"
        "%1 = stablehlo.cosine %0 " S("{\"t\"}") " : tensor<4xf32>\nreturn %1 : tensor<4xf32>",
        "[{\"t\"}] %x out_sharding=<@mesh, [{\"t\"}]> : (tensor<8xf32>) -> tensor<4xf32>\n%1 = stablehlo.cosine %0 " S("{\"t\"}"),
        "[{\"d\"}] %x out_sharding=<@mesh, [{\"d\"}]> : (tensor<8xf32>) -> tensor<4xf32>\n%1 = stablehlo.cosine %0 " S("{\"d\"}"),
        ""},
    {"loss of a microbatch that is averaged twice", "(%l: tensor<8xf32> " A("{\"d\"}") ") -> (tensor<f32> " A("") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%n = stablehlo.constant dense<8.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> "
        "tensor<f32>\n"
        "%1 = stablehlo.divide %0, %n : tensor<f32>\nreturn %1 : tensor<f32>",
        "(%l: tensor<4xf32> " A("{\"d\"}") ") -> (tensor<f32> " A("") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%n = stablehlo.constant dense<8.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> "
        "tensor<f32>\n"
        "%1 = stablehlo.divide %0, %n : tensor<f32>\n%2 = sdy.all_reduce {\"d\"} %1 out_sharding=<@mesh, []> : tensor<f32>\n"
        "return %2 : tensor<f32>",
        "return %2", "%3 = stablehlo.divide %2, %n : tensor<f32>\nreturn %3", "divide"},
    {"loss that is divided by the tokens of one rank", "(%l: tensor<8xf32> " A("{\"d\"}") ") -> (tensor<f32> " A("") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%n = stablehlo.constant dense<8.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> "
        "tensor<f32>\n"
        "%1 = stablehlo.divide %0, %n : tensor<f32>\nreturn %1 : tensor<f32>",
        "(%l: tensor<4xf32> " A("{\"d\"}") ") -> (tensor<f32> " A("") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%n = stablehlo.constant dense<8.0> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> "
        "tensor<f32>\n"
        "%1 = stablehlo.divide %0, %n : tensor<f32>\n%2 = sdy.all_reduce {\"d\"} %1 out_sharding=<@mesh, []> : tensor<f32>\n"
        "return %2 : tensor<f32>",
        "dense<8.0>", "dense<4.0>", "divide"},
    {"maximum over a split vocabulary that is a sum of maxima",
        "(%l: tensor<8x16xf32> " A("{}, {\"t\"}") ") -> (tensor<8xf32> " A("{}") ")",
        "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) "
        "-> tensor<8xf32>\n"
        "return %0 : tensor<8xf32>",
        "(%l: tensor<8x8xf32> " A("{}, {\"t\"}") ") -> (tensor<8xf32> " A("{}") ")",
        "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%0 = stablehlo.reduce(%l init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) "
        "-> tensor<8xf32>\n"
        "%1 = sdy.all_reduce max {\"t\"} %0 out_sharding=<@mesh, [{}]> : tensor<8xf32>\nreturn %1 : tensor<8xf32>",
        "sdy.all_reduce max", "sdy.all_reduce", "all_reduce"},
    {"norm of clipped gradients: square roots of parts are summed",
        "(%g: tensor<16xf32> " A("{\"t\"}") ") -> (tensor<f32> " A("") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%0 = stablehlo.multiply %g, %g : tensor<16xf32>\n"
        "%1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> "
        "tensor<f32>\n"
        "%2 = stablehlo.sqrt %1 : tensor<f32>\nreturn %2 : tensor<f32>",
        "(%g: tensor<8xf32> " A("{\"t\"}") ") -> (tensor<f32> " A("") ")",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%0 = stablehlo.multiply %g, %g " S(
            "{\"t\"}") " : tensor<8xf32>\n"
                       "%1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, "
                       "tensor<f32>) -> tensor<f32>\n"
                       "%2 = sdy.all_reduce {\"t\"} %1 out_sharding=<@mesh, []> : tensor<f32>\n%3 = stablehlo.sqrt %2 : "
                       "tensor<f32>\nreturn %3 : tensor<f32>",
        "%2 = sdy.all_reduce {\"t\"} %1 out_sharding=<@mesh, []> : tensor<f32>\n%3 = stablehlo.sqrt %2 : tensor<f32>",
        "%2 = stablehlo.sqrt %1 : tensor<f32>\n%3 = sdy.all_reduce {\"t\"} %2 out_sharding=<@mesh, []> : tensor<f32>", "sqrt"},
    {"gathered columns that are taken for rows",
        "(%w: tensor<4x4xf32> " A("{}, {\"t\"}") ") -> (tensor<4x4xf32> " A("{}, {}") ")",
        "%0 = stablehlo.negate %w : tensor<4x4xf32>\nreturn %0 : tensor<4x4xf32>",
        "(%w: tensor<4x2xf32> " A("{}, {\"t\"}") ") -> (tensor<4x4xf32> " A("{}, {}") ")",
        "%0 = sdy.all_gather [{}, {\"t\"}] %w out_sharding=<@mesh, [{}, {}]> : (tensor<4x2xf32>) -> tensor<4x4xf32>\n"
        "%1 = stablehlo.negate %0 : tensor<4x4xf32>\nreturn %1 : tensor<4x4xf32>",
        "%1 = stablehlo.negate %0 : tensor<4x4xf32>",
        "%2 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>\n%1 = stablehlo.negate %2 : "
        "tensor<4x4xf32>",
        ""},
    {"update of the weights by the wrong sign",
        "(%w: tensor<8xf32> " A("{\"d\"}") ", %g: tensor<8xf32> " A("{\"d\"}") ") -> (tensor<8xf32> " A("{\"d\"}") ")",
        "%0 = stablehlo.subtract %w, %g : tensor<8xf32>\nreturn %0 : tensor<8xf32>",
        "(%w: tensor<4xf32> " A("{\"d\"}") ", %g: tensor<4xf32> " A("{\"d\"}") ") -> (tensor<4xf32> " A("{\"d\"}") ")",
        "%0 = stablehlo.subtract %w, %g " S("{\"d\"}") " : tensor<4xf32>\nreturn %0 : tensor<4xf32>", "%w, %g " S("{\"d\"}"),
        "%g, %w " S("{\"d\"}"), "subtract"},
};

#undef S
#undef A

Program programOf(const char* signature, const std::string& ops)
{
    const std::string text = fmt::format(
        "module {{\n  sdy.mesh @mesh = <[\"d\"=2, \"t\"=2]>\n  func.func public @main{} {{\n{}\n  }}\n}}\n", signature, ops);
    auto program = readProgram(text, "pair");
    if (!program)
        qWarning("%s", program.error().front().message.c_str());
    return program ? *std::move(program) : Program();
}

} // namespace

void TestProve::faultsAreRejected_data()
{
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < std::size(kPairs); ++i)
        QTest::newRow(kPairs[i].name) << static_cast<int>(i);
}

void TestProve::faultsAreRejected()
{
    QFETCH(int, index);
    const FaultyPair& pair = kPairs[index];
    const Program source = programOf(pair.signature, pair.source);
    QCOMPARE(source.functions.size(), std::size_t{1});
    const Program right = programOf(pair.localSignature, pair.device);
    QCOMPARE(right.functions.size(), std::size_t{1});
    const Proof proof = prove(source, deviceProgramOf(right));
    QVERIFY2(proof.isProved(), whyNot(proof).c_str());

    std::string changed = pair.device;
    const std::size_t place = changed.find(pair.right);
    QVERIFY(place != std::string::npos);
    changed.replace(place, std::string_view(pair.right).size(), pair.wrong);
    const Program wrong = programOf(pair.localSignature, changed);
    QCOMPARE(wrong.functions.size(), std::size_t{1});
    const Proof refuted = prove(source, deviceProgramOf(wrong));
    QVERIFY(!refuted.isProved());
    const std::string& named = refuted.functions.front().obstacles.front().opName;
    QVERIFY2(*pair.op == '\0' || named == pair.op, whyNot(refuted).c_str());
}

/// A device program of another mesh, of other arguments or of other functions is not the source's.
void TestProve::programsOfOthersAreRejected()
{
    const FaultyPair& pair = kPairs[0];
    const Program source = programOf(pair.signature, pair.source);
    const Program device = programOf(pair.localSignature, pair.device);
    QVERIFY(prove(source, deviceProgramOf(device)).isProved());

    const auto saysOf = [&](const Program& other) {
        const Proof proof = prove(source, deviceProgramOf(other));
        return proof.isProved() ? QString("proved") : QString::fromStdString(whyNot(proof));
    };
    Program renamed = device;
    renamed.functions.front().name = "other";
    QVERIFY2(saysOf(renamed).contains("the source has no such function"), qPrintable(saysOf(renamed)));
    QVERIFY2(saysOf(renamed).contains("the device program has no such function"), qPrintable(saysOf(renamed)));
    Program empty = device;
    empty.functions.clear();
    QVERIFY2(saysOf(empty).contains("the device program has no such function"), qPrintable(saysOf(empty)));
    Program wider = device;
    Function& function = wider.functions.front();
    function[function.arguments().front()].type.dtype = DType::F64;
    QVERIFY2(saysOf(wider).contains("another element type"), qPrintable(saysOf(wider)));
    Program turned = device;
    turned.meshes.front().mesh = valueOf(parseMesh("t=2,d=2"));
    QVERIFY2(saysOf(turned).contains("its mesh has other axes"), qPrintable(saysOf(turned)));
}

MESHWRIGHT_TEST(TestProve)

} // namespace tst_prove

#include "tst_prove.moc"
