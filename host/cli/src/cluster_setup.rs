//! The setup of a machine of a new cluster: etcd's settings and the section `[cluster]`.

use clap::Args;
use std::net::IpAddr;
use std::path::PathBuf;

/// A machine, by its name.
type Machine = (String, IpAddr);

/// The machines of a cluster.
#[derive(Debug, Args)]
pub(crate) struct Machines {
    /// The name of the machine to set up.
    #[arg(long, value_name = "NAME")]
    this: String,
    /// A machine with a member of etcd, as `NAME=IP-ADDRESS`; repeat it for each machine. To survive the failure of one
    /// machine, at least three are needed.
    #[arg(long = "machine", value_name = "NAME=ADDRESS", required = true, value_parser = machine)]
    machines: Vec<Machine>,
    #[command(flatten)]
    tls: TlsFiles,
}

/// The TLS files for connections between the members of etcd, and between them and the nodes. Without files: no TLS.
#[derive(Debug, Args)]
struct TlsFiles {
    /// The certificate authority of all machines, PEM. With `--etcd-certificate` and `--etcd-key`: etcd uses TLS, and
    /// accepts only machines with a certificate of this authority.
    #[arg(long, value_name = "FILE", requires_all = ["etcd_certificate", "etcd_key"], value_parser = file)]
    etcd_ca: Option<PathBuf>,
    /// The certificate of this machine for its address, as a server and as a client, PEM.
    #[arg(long, value_name = "FILE", requires_all = ["etcd_ca", "etcd_key"], value_parser = file)]
    etcd_certificate: Option<PathBuf>,
    /// The private key of the certificate, PEM. Both etcd and switchyard must be able to read it.
    #[arg(long, value_name = "FILE", requires_all = ["etcd_ca", "etcd_certificate"], value_parser = file)]
    etcd_key: Option<PathBuf>,
}

impl TlsFiles {
    /// Authority, certificate and key; `None` without TLS.
    fn all(&self) -> Option<[String; 3]> {
        let files = [self.etcd_ca.as_ref()?, self.etcd_certificate.as_ref()?, self.etcd_key.as_ref()?];
        Some(files.map(|path| path.display().to_string()))
    }

    const fn scheme(&self) -> &'static str {
        if self.etcd_ca.is_some() { "https" } else { "http" }
    }
}

/// An absolute path, since etcd runs in another folder, that needs no quoting in either file.
fn file(text: &str) -> Result<PathBuf, String> {
    if !text.starts_with('/') {
        return Err("name it from the root, like /etc/etcd/machine.pem".to_owned());
    }
    if text.contains(['"', '\\', '$', '`']) || text.contains(char::is_control) {
        return Err("the name has a character that the files of settings cannot have".to_owned());
    }
    Ok(text.into())
}

fn machine(text: &str) -> Result<Machine, String> {
    let (name, address) = text.split_once('=').ok_or("write it like a=192.0.2.1")?;
    let is_name = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
    if !is_name {
        return Err("a name has letters, digits and hyphens".to_owned());
    }
    let address = address.parse().map_err(|_| format!("{address:?} is not an IP address"))?;
    Ok((name.to_owned(), address))
}

/// An address in a URL.
fn host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

impl Machines {
    /// The address of this machine, and all machines, this one first.
    fn machines_from_own(&self) -> Result<(IpAddr, Vec<&Machine>), String> {
        if self.machines.len() < 3 || self.machines.len().is_multiple_of(2) {
            return Err(format!(
                "{} machines: one more than the double of those that may die is needed, such as 3",
                self.machines.len()
            ));
        }
        let mut names: Vec<_> = self.machines.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        if names.len() < self.machines.len() {
            return Err("two machines have the same name".to_owned());
        }
        let this = self.machines.iter().position(|(name, _)| *name == self.this);
        let this = this.ok_or_else(|| format!("no --machine has the name of this one, {:?}", self.this))?;
        let mut order: Vec<_> = self.machines.iter().collect();
        order.rotate_left(this);
        let address = order.first().map_or(IpAddr::from([0, 0, 0, 0]), |(_, address)| *address);
        Ok((address, order))
    }

    /// The settings of etcd on this machine, for `/etc/default/etcd`.
    ///
    /// # Errors
    /// If the machines are not a valid cluster.
    pub(crate) fn etcd_settings(&self) -> Result<String, String> {
        let own = host(self.machines_from_own()?.0);
        let scheme = self.tls.scheme();
        let members: Vec<_> = self
            .machines
            .iter()
            .map(|(name, address)| format!("{name}={scheme}://{}:2380", host(*address)))
            .collect();
        let mut settings = vec![
            ("NAME", self.this.clone()),
            ("LISTEN_PEER_URLS", format!("{scheme}://{own}:2380")),
            ("INITIAL_ADVERTISE_PEER_URLS", format!("{scheme}://{own}:2380")),
            ("LISTEN_CLIENT_URLS", format!("{scheme}://{own}:2379")),
            ("ADVERTISE_CLIENT_URLS", format!("{scheme}://{own}:2379")),
            ("INITIAL_CLUSTER", members.join(",")),
            ("INITIAL_CLUSTER_TOKEN", "switchyard".to_owned()),
            ("PRE_VOTE", "true".to_owned()),
            ("EXPERIMENTAL_INITIAL_CORRUPT_CHECK", "true".to_owned()),
        ];
        if let Some([ca, certificate, key]) = self.tls.all() {
            settings.extend([
                ("CERT_FILE", certificate.clone()),
                ("KEY_FILE", key.clone()),
                ("TRUSTED_CA_FILE", ca.clone()),
                ("CLIENT_CERT_AUTH", "true".to_owned()),
                ("PEER_CERT_FILE", certificate),
                ("PEER_KEY_FILE", key),
                ("PEER_TRUSTED_CA_FILE", ca),
                ("PEER_CLIENT_CERT_AUTH", "true".to_owned()),
            ]);
        }
        let lines = settings.into_iter().map(|(name, value)| format!("ETCD_{name}=\"{value}\"\n"));
        Ok(lines.collect())
    }

    /// The section `[cluster]` of this machine's configuration.
    ///
    /// # Errors
    /// If the machines are not a valid cluster.
    pub(crate) fn section(&self) -> Result<String, String> {
        let (own, order) = self.machines_from_own()?;
        let scheme = self.tls.scheme();
        let endpoints: Vec<_> =
            order.iter().map(|(_, address)| format!("\"{scheme}://{}:2379\"", host(*address))).collect();
        let tls = self.tls.all().map_or_else(String::new, |[ca, certificate, key]| {
            format!("ca = \"{ca}\"\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n")
        });
        Ok(format!(
            "\n[cluster]\nnode = \"{}\"\nendpoints = [{}]\naddress = \"https://{own}:8443\"\nlisten = \"{own}:7733\"\n{tls}",
            self.this,
            endpoints.join(", "),
            own = host(own)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machines(this: &str, all: &[&str]) -> Machines {
        let machines = all.iter().map(|one| machine(one).unwrap()).collect();
        Machines {
            this: this.to_owned(),
            machines,
            tls: TlsFiles { etcd_ca: None, etcd_certificate: None, etcd_key: None },
        }
    }

    #[test]
    fn with_certificates_everything_speaks_tls() {
        let mut b = machines("b", &["a=192.0.2.1", "b=192.0.2.2", "w=192.0.2.3"]);
        let [etcd_ca, etcd_certificate, etcd_key] =
            ["/etc/ca.pem", "/etc/b.pem", "/etc/b.key"].map(|path| file(path).ok());
        b.tls = TlsFiles { etcd_ca, etcd_certificate, etcd_key };
        let (settings, section) = (b.etcd_settings().unwrap(), b.section().unwrap());
        assert!(!settings.contains("http://"), "{settings}");
        for part in ["", "PEER_"] {
            for line in [
                "CERT_FILE=\"/etc/b.pem\"",
                "KEY_FILE=\"/etc/b.key\"",
                "TRUSTED_CA_FILE=\"/etc/ca.pem\"",
                "CLIENT_CERT_AUTH=\"true\"",
            ] {
                assert!(settings.contains(&format!("\nETCD_{part}{line}\n")), "{part}{line}: {settings}");
            }
        }
        let end = "ca = \"/etc/ca.pem\"\ncertificate = \"/etc/b.pem\"\nkey = \"/etc/b.key\"\n";
        assert!(section.contains("\"https://192.0.2.2:2379\"") && section.ends_with(end), "{section}");
        assert!(!section.contains("\"http://"), "{section}");
        for wrong in ["ca.pem", "/etc/\"ca\".pem", "/etc/$ca", "/etc/ca\n"] {
            assert!(file(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_machine_asks_its_own_member_first() {
        let b = machines("b", &["a=192.0.2.1", "b=192.0.2.2", "w=2001:db8::3"]);
        let section = b.section().unwrap();
        let endpoints =
            "[\"http://192.0.2.2:2379\", \"http://[2001:db8::3]:2379\", \"http://192.0.2.1:2379\"]";
        assert!(section.contains(endpoints) && section.contains("node = \"b\""), "{section}");
        let settings = b.etcd_settings().unwrap();
        assert!(settings.contains("ETCD_LISTEN_CLIENT_URLS=\"http://192.0.2.2:2379\"\n"), "{settings}");
        let members = "ETCD_INITIAL_CLUSTER=\"a=http://192.0.2.1:2380,b=http://192.0.2.2:2380,w=http://[2001:db8::3]:2380\"\n";
        assert!(settings.contains(members), "{settings}");
    }

    #[test]
    fn what_makes_no_cluster_is_refused() {
        assert!(machines("c", &["a=192.0.2.1", "b=192.0.2.2", "w=192.0.2.3"]).section().is_err());
        assert!(machines("a", &["a=192.0.2.1", "b=192.0.2.2"]).section().is_err());
        assert!(machines("a", &["a=192.0.2.1", "a=192.0.2.2", "w=192.0.2.3"]).etcd_settings().is_err());
        for wrong in ["a", "a=", "=192.0.2.1", "a b=192.0.2.1", "a=example.org"] {
            assert!(machine(wrong).is_err(), "{wrong}");
        }
    }
}
