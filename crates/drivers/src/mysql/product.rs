//! Which product a server is, by the version that it tells.
//!
//! MySQL tells `8.0.36`, with what its packager adds behind a hyphen. What speaks its protocol puts
//! its own name in: MariaDB behind its own version, TiDB between the version of MySQL that it
//! resembles and its own.

use super::claims::Flavour;
use isolde_harness::Failure;

/// A product and its own version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Product {
    pub(super) name: &'static str,
    pub(super) version: String,
}

impl Product {
    /// What a server is that answers this to `SELECT version()`.
    pub(super) fn of(told: &str) -> Product {
        if let Some((_, own)) = told.split_once("-TiDB-") {
            let version = own.strip_prefix('v').unwrap_or(own).to_owned();
            return Product { name: "TiDB", version };
        }
        let name = if told.contains("MariaDB") { "MariaDB" } else { "MySQL" };
        // Old clients took a MariaDB for MySQL 5.5.5, and proxies still say so.
        let own = told.strip_prefix("5.5.5-").filter(|_| name == "MariaDB").unwrap_or(told);
        Product { name, version: own.split('-').next().unwrap_or_default().to_owned() }
    }

    /// Refuses a product of other promises than those that the address asks for.
    pub(super) fn expect(
        &self,
        flavour: &Flavour,
        scheme: &str,
        server: &str,
    ) -> Result<(), Failure> {
        let (is_tidb, wants_tidb) = (self.name == "TiDB", flavour.name == "TiDB");
        if is_tidb == wants_tidb {
            return Ok(());
        }
        let expected = if wants_tidb { "TiDB" } else { "MySQL or MariaDB" };
        let right = if is_tidb { "tidb" } else { "mysql" };
        let Product { name, version } = self;
        Err(Failure::Refused(format!(
            "expected {expected} at {server}, as {scheme}:// says, found {name} {version}, which \
             promises something else: write {right}://"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::FLAVOURS;
    use super::*;

    #[test]
    fn a_version_is_that_of_the_product_and_not_of_what_it_resembles() {
        for (told, name, version) in [
            ("8.0.36", "MySQL", "8.0.36"),
            ("8.4.3-0ubuntu0.24.04.1", "MySQL", "8.4.3"),
            ("5.7.44-log", "MySQL", "5.7.44"),
            ("10.11.6-MariaDB-0+deb12u1", "MariaDB", "10.11.6"),
            ("5.5.5-10.6.18-MariaDB-log", "MariaDB", "10.6.18"),
            ("5.7.25-TiDB-v7.1.0", "TiDB", "7.1.0"),
            ("8.0.11-TiDB-v8.5.1", "TiDB", "8.5.1"),
            ("8.0.11-TiDB-v7.5.2-serverless", "TiDB", "7.5.2-serverless"),
        ] {
            assert_eq!(Product::of(told), Product { name, version: version.into() }, "{told}");
        }
    }

    #[test]
    fn a_server_of_other_promises_is_refused() {
        let refused = |told: &str, place: usize, scheme| {
            let found = Product::of(told).expect(&FLAVOURS[place], scheme, "h:4000");
            found.err().map(|failure| failure.to_string())
        };
        let tidb = "8.0.11-TiDB-v8.5.1";
        assert_eq!(
            refused(tidb, 0, "mysql").as_deref(),
            Some(
                "expected MySQL or MariaDB at h:4000, as mysql:// says, found TiDB 8.5.1, which \
                 promises something else: write tidb://"
            )
        );
        assert_eq!(
            refused("8.0.36", 2, "tidb").as_deref(),
            Some(
                "expected TiDB at h:4000, as tidb:// says, found MySQL 8.0.36, which promises \
                 something else: write mysql://"
            )
        );
        assert_eq!(refused(tidb, 2, "tidb"), None);
        assert_eq!(refused("10.11.6-MariaDB", 0, "mysql"), None);
        assert_eq!(refused("10.11.6-MariaDB", 1, "galera"), None);
    }
}
