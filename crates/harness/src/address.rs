//! The address of a database, as users write it: a URL, or only a name.
//!
//! `scheme://user:password@host:port,host:port/path?option=value`. Everything but the
//! scheme may be missing. Displayed without the password and without options whose
//! names say that they are secret, so an address can stand in logs and reports.

use std::fmt;

/// An address.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// What stands before the colon, in lower case; or the whole name.
    pub scheme: String,
    /// The user's name.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The servers.
    pub hosts: Vec<Host>,
    /// What follows the servers, without the slash; or what follows `scheme:`.
    pub path: String,
    /// The options behind the question mark.
    pub options: Vec<(String, String)>,
    /// Whether there is nothing but a name.
    pub is_bare: bool,
}

/// One server of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name or number, without the brackets of IPv6.
    pub name: String,
    /// Its port, if it is given.
    pub port: Option<u16>,
}

impl Host {
    /// The server with this port, if none is given.
    pub fn with_port(&self, default: u16) -> (String, u16) {
        (self.name.clone(), self.port.unwrap_or(default))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(out, "[{}]", self.name)?;
        } else {
            out.write_str(&self.name)?;
        }
        self.port.map_or(Ok(()), |port| write!(out, ":{port}"))
    }
}

impl Address {
    /// Reads an address. The message never repeats the text, which may have a password.
    pub fn parse(text: &str) -> Result<Address, String> {
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) => (scheme, Some(rest)),
            None => (text, None),
        };
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if scheme.is_empty() || !scheme.bytes().all(is_scheme) {
            return Err("expected the name of a database or a URL, such as \
                        scheme://user@host:port/name"
                .to_owned());
        }
        let mut address = Address {
            scheme: scheme.to_ascii_lowercase(),
            user: None,
            password: None,
            hosts: Vec::new(),
            path: String::new(),
            options: Vec::new(),
            is_bare: rest.is_none(),
        };
        let Some(rest) = rest else { return Ok(address) };
        let Some(rest) = rest.strip_prefix("//") else {
            // `file:file`, `exec:program --flag`: no servers, nothing to decode.
            rest.clone_into(&mut address.path);
            return Ok(address);
        };
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            address.options.push((decoded(name)?, decoded(value)?));
        }
        let (servers, path) = rest.split_once('/').unwrap_or((rest, ""));
        address.path = decoded(path)?;
        let servers = match servers.rsplit_once('@') {
            Some((login, servers)) => {
                let (user, password) = match login.split_once(':') {
                    Some((user, password)) => (user, Some(password)),
                    None => (login, None),
                };
                address.user = Some(decoded(user)?).filter(|user| !user.is_empty());
                address.password = password.map(decoded).transpose()?;
                servers
            }
            None => servers,
        };
        for server in servers.split(',').filter(|server| !server.is_empty()) {
            address.hosts.push(host(server)?);
        }
        Ok(address)
    }

    /// The option of this name.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|option| option.0 == name).map(|option| option.1.as_str())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.scheme)?;
        if self.is_bare {
            return Ok(());
        }
        if self.hosts.is_empty() && self.user.is_none() && self.options.is_empty() {
            return write!(out, ":{}", self.path);
        }
        out.write_str("://")?;
        if let Some(user) = &self.user {
            write!(out, "{user}@")?;
        }
        for (place, host) in self.hosts.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(out, "{comma}{host}")?;
        }
        if !self.path.is_empty() {
            write!(out, "/{}", self.path)?;
        }
        for (place, (name, value)) in self.options.iter().enumerate() {
            let mark = if place > 0 { '&' } else { '?' };
            let shown = if is_secret(name) { "…" } else { value };
            write!(out, "{mark}{name}={shown}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Address({self})")
    }
}

fn is_secret(option: &str) -> bool {
    let option = option.to_ascii_lowercase();
    // These name files.
    if ["sslkey", "ssl-key"].contains(&option.as_str()) {
        return false;
    }
    ["pass", "secret", "token", "key"].iter().any(|word| option.contains(word))
}

fn host(server: &str) -> Result<Host, String> {
    let (name, port) = if let Some(rest) = server.strip_prefix('[') {
        let (name, after) =
            rest.split_once(']').ok_or("expected ] after the address of a server")?;
        (name, after.strip_prefix(':'))
    } else {
        match server.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (server, None),
        }
    };
    if name.is_empty() {
        return Err("expected the name of a server".to_owned());
    }
    let port = match port {
        None => None,
        Some(port) => match port.parse() {
            Ok(port) if port > 0 => Some(port),
            // What stands in the place of a port may be a password with an @ missing.
            _ => return Err("expected a port from 1 to 65535 behind the server's name".to_owned()),
        },
    };
    Ok(Host { name: decoded(name)?, port })
}

/// The text with `%40` and the like replaced.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or("expected two hexadecimal digits after % in the URL")?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| "expected UTF-8 behind the % signs of the URL".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_url_is_found() {
        let text = "Store://al%40ice:se%3Acret@one:5433,[::1]:2/data?sslmode=require&password=x";
        let address = Address::parse(text).expect("an address");
        assert_eq!(address.scheme, "store");
        assert_eq!(address.user.as_deref(), Some("al@ice"));
        assert_eq!(address.password.as_deref(), Some("se:cret"));
        let hosts: Vec<_> = address.hosts.iter().map(|host| host.with_port(1)).collect();
        assert_eq!(hosts, [("one".to_owned(), 5433), ("::1".to_owned(), 2)]);
        assert_eq!(address.path, "data");
        assert_eq!(address.option("sslmode"), Some("require"));
    }

    #[test]
    fn passwords_are_not_displayed() {
        let text = "store://root:hunter2@db:3306/test?sslkey=a.pem&password=hunter2";
        let address = Address::parse(text).expect("an address");
        assert_eq!(address.to_string(), "store://root@db:3306/test?sslkey=a.pem&password=…");
        assert_eq!(format!("{address:?}"), format!("Address({address})"));
    }

    #[test]
    fn a_name_alone_is_bare_and_a_path_needs_no_servers() {
        let bare = Address::parse("file").expect("an address");
        assert!(bare.is_bare);
        let file = Address::parse("file:/var/a b%.db").expect("an address");
        assert_eq!((file.path.as_str(), file.is_bare), ("/var/a b%.db", false));
        assert_eq!(file.to_string(), "file:/var/a b%.db");
        let slashes = Address::parse("file:///var/a.db").expect("an address");
        assert_eq!((slashes.path.as_str(), slashes.hosts.len()), ("var/a.db", 0));
    }

    #[test]
    fn messages_do_not_repeat_what_may_be_a_password() {
        for text in ["pg://a:hunter2", "pg://[hunter2", "pg://u:%zz@h", "hunter 2", "", "pg://:1"] {
            let message = Address::parse(text).expect_err(text);
            assert!(message.starts_with("expected ") && !message.contains("hunter2"), "{message}");
        }
    }
}
