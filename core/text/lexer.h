// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

namespace meshwright {

enum class TokenKind : std::uint8_t {
    End,
    Word, ///< stablehlo.add, tensor, x, LT
    Value, ///< %0, %arg1; `text` has no %
    Symbol, ///< @main, @"a b"; `text` has no @ but the quotes
    Hash, ///< #sdy.sharding, #loc3, #0; `text` has no #
    Type, ///< !stablehlo.token
    Label, ///< ^bb0
    Integer, ///< -12, 0x1F
    Float, ///< 1.5, -1.0e-3
    String, ///< with its quotes, escapes as they stand
    Arrow, ///< ->
    Punctuation, ///< one character
    Bad, ///< a character that starts nothing, a string without an end
};

struct Token {
    TokenKind kind = TokenKind::End;
    std::string_view text;
    std::size_t offset = 0; ///< of its first character in the whole text

    bool is(char punctuation) const { return kind == TokenKind::Punctuation && text.front() == punctuation; }
    bool isWord(std::string_view word) const { return kind == TokenKind::Word && text == word; }
};

/// Cuts MLIR text into tokens, one at a time; comments and white space are skipped. Never reads past the text.
class Lexer {
public:
    explicit Lexer(std::string_view text)
        : m_text(text)
    {
    }

    Token next();

    /// Where the next token is looked for: right behind the last one.
    std::size_t position() const { return m_position; }
    void setPosition(std::size_t position) { m_position = position; }
    std::string_view text() const { return m_text; }

    /// The next character that is neither white space nor in a comment, without moving; NUL at the end.
    char peek();

private:
    void skipBlank();
    Token token(TokenKind kind, std::size_t start, std::size_t skipped = 0) const;
    std::size_t endOfName(std::size_t from, std::string_view extra) const;
    Token number(std::size_t start);
    Token string(TokenKind kind, std::size_t start, std::size_t quote);
    Token named(TokenKind kind, std::size_t start);

    std::string_view m_text;
    std::size_t m_position = 0;
};

/// How a token is named in a message: `"foo"`, `the end of the text`.
std::string_view tokenName(const Token& token);

} // namespace meshwright
