//! SQL as tokens with their places, by the lexical rules of PostgreSQL's documentation.
//!
//! The places matter: a statement is changed by putting text between two of its tokens, and
//! nothing else of it is touched. What is not understood is a token too, so that nothing is lost.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A keyword, or a name without quotes.
    Word,
    /// A name in quotes.
    Quoted,
    /// A string or a number.
    Literal,
    /// `$1`.
    Parameter,
    /// One of `( ) [ ] , ; .`
    Punctuation(u8),
    /// Anything else.
    Operator,
}

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Token {
    pub(crate) fn text<'a>(&self, sql: &'a str) -> &'a str {
        &sql[self.start..self.end]
    }

    /// Whether it is this keyword, in capitals or not.
    pub(crate) fn is(&self, sql: &str, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text(sql).eq_ignore_ascii_case(word)
    }

    pub(crate) fn is_punctuation(&self, byte: u8) -> bool {
        self.kind == TokenKind::Punctuation(byte)
    }
}

/// Where comments begin and end.
pub(crate) type Comments = Vec<(usize, usize)>;

/// The tokens of a text, and its comments' places. `None` if a quote or a comment has no end:
/// the server will refuse that, whatever it is.
pub(crate) fn tokens(sql: &str) -> Option<(Vec<Token>, Comments)> {
    let mut lexer = Lexer { bytes: sql.as_bytes(), at: 0, comments: Vec::new() };
    let mut tokens = Vec::with_capacity(sql.len() / 4);
    while lexer.skip_blanks()? {
        let start = lexer.at;
        let kind = lexer.token()?;
        tokens.push(Token { kind, start, end: lexer.at });
    }
    Some((tokens, lexer.comments))
}

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    comments: Vec<(usize, usize)>,
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_name(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Goes to the next token; false at the end.
    fn skip_blanks(&mut self) -> Option<bool> {
        loop {
            let start = self.at;
            match (self.peek(0), self.peek(1)) {
                _ if self.at >= self.bytes.len() => return Some(false),
                (b'-', b'-') => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
                    self.comments.push((start, self.at));
                }
                (b'/', b'*') => {
                    self.skip_comment()?;
                    self.comments.push((start, self.at));
                }
                (byte, _) if byte.is_ascii_whitespace() || byte == 0x0b => self.at += 1,
                _ => return Some(true),
            }
        }
    }

    /// Comments nest.
    fn skip_comment(&mut self) -> Option<()> {
        let mut depth = 0u32;
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => depth += 1,
                (b'*', b'/') => depth -= 1,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            self.at += 2;
            if depth == 0 {
                return Some(());
            }
        }
        None
    }

    fn token(&mut self) -> Option<TokenKind> {
        let byte = self.peek(0);
        match byte {
            b'\'' => self.skip_string(false),
            b'"' => {
                self.skip_quoted(b'"')?;
                Some(TokenKind::Quoted)
            }
            b'e' | b'E' if self.peek(1) == b'\'' => {
                self.at += 1;
                self.skip_string(true)
            }
            b'b' | b'B' | b'x' | b'X' | b'n' | b'N' if self.peek(1) == b'\'' => {
                self.at += 1;
                self.skip_string(false)
            }
            b'u' | b'U' if self.peek(1) == b'&' && matches!(self.peek(2), b'\'' | b'"') => {
                self.at += 2;
                let quote = self.peek(0);
                self.skip_quoted(quote)?;
                Some(if quote == b'"' { TokenKind::Quoted } else { TokenKind::Literal })
            }
            b'$' => self.skip_dollar(),
            b'(' | b')' | b'[' | b']' | b',' | b';' => {
                self.at += 1;
                Some(TokenKind::Punctuation(byte))
            }
            b'.' if !self.peek(1).is_ascii_digit() => {
                self.at += 1;
                Some(TokenKind::Punctuation(b'.'))
            }
            b'0'..=b'9' | b'.' => {
                self.skip_number();
                Some(TokenKind::Literal)
            }
            _ if is_name_start(byte) => {
                self.skip_while(is_name);
                Some(TokenKind::Word)
            }
            _ => {
                self.skip_operator();
                Some(TokenKind::Operator)
            }
        }
    }

    fn skip_while(&mut self, is_inside: fn(u8) -> bool) {
        while self.at < self.bytes.len() && is_inside(self.bytes[self.at]) {
            self.at += 1;
        }
    }

    fn skip_string(&mut self, has_escapes: bool) -> Option<TokenKind> {
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\\' if has_escapes => self.at += 2,
                b'\'' if self.peek(1) == b'\'' => self.at += 2,
                b'\'' => {
                    self.at += 1;
                    return Some(TokenKind::Literal);
                }
                _ => self.at += 1,
            }
        }
        None
    }

    fn skip_quoted(&mut self, quote: u8) -> Option<()> {
        self.at += 1;
        while self.at < self.bytes.len() {
            let is_end = self.peek(0) == quote;
            let is_doubled = is_end && self.peek(1) == quote;
            self.at += if is_doubled { 2 } else { 1 };
            if is_end && !is_doubled {
                return Some(());
            }
        }
        None
    }

    /// A parameter, or a string between dollars.
    fn skip_dollar(&mut self) -> Option<TokenKind> {
        let start = self.at;
        self.at += 1;
        if self.peek(0).is_ascii_digit() {
            self.skip_while(|byte| byte.is_ascii_digit());
            return Some(TokenKind::Parameter);
        }
        self.skip_while(|byte| is_name(byte) && byte != b'$');
        if self.peek(0) != b'$' {
            return Some(TokenKind::Operator);
        }
        self.at += 1;
        let tag = &self.bytes[start..self.at];
        let rest = &self.bytes[self.at..];
        let length = rest.windows(tag.len()).position(|window| window == tag)?;
        self.at += length + tag.len();
        Some(TokenKind::Literal)
    }

    fn skip_number(&mut self) {
        self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if self.peek(0) == b'.' {
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        }
        let is_exponent = matches!(self.bytes[self.at - 1], b'e' | b'E');
        if is_exponent && matches!(self.peek(0), b'+' | b'-') {
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
    }

    /// Operators are taken together, but for what begins a comment.
    fn skip_operator(&mut self) {
        self.at += 1;
        while self.at < self.bytes.len()
            && b"+-*/<>=~!@#%^&|`?:".contains(&self.bytes[self.at])
            && !(self.peek(0) == b'-' && self.peek(1) == b'-')
            && !(self.peek(0) == b'/' && self.peek(1) == b'*')
        {
            self.at += 1;
        }
    }
}
