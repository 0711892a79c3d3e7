//! How the servers convert the encodings of clients whose characters are more than one byte. The coordinator is asked
//! for the whole of one when a client first wants it (about a second); then all threads of the router know it.

use std::collections::HashMap;
use std::sync::Arc;

use pgherd_backend::{BackendError, connect};
use pgherd_control::encoding::{LEARNED, learn};
use pgherd_wire::encoding::{Encoding, Known, by_name};
use pgherd_wire::multibyte::Multibyte;

use crate::encoding::Charset;
use crate::error::{Failure, Result};
use crate::shared::Shared;

/// Those that are known. Whoever wants one that another asks for waits here.
pub type Conversions = tokio::sync::Mutex<HashMap<&'static str, Arc<Multibyte>>>;

impl Shared {
    /// An encoding by PostgreSQL's name.
    pub async fn charset(&self, name: &'static str, database: &str) -> Result<Charset> {
        let encoding = match by_name(name) {
            None => None,
            Some(Known::Here(encoding)) => Some(Encoding::SingleByte(encoding)),
            Some(Known::There(name)) => {
                let mut known = self.conversions.lock().await;
                let found = match known.get(name) {
                    Some(found) => found.clone(),
                    None => {
                        let found = Arc::new(self.learn_conversion(name, database).await?);
                        known.insert(name, found.clone());
                        found
                    }
                };
                Some(Encoding::Multibyte(found))
            }
        };
        Ok(Charset { name, encoding })
    }

    async fn learn_conversion(&self, name: &'static str, database: &str) -> Result<Multibyte> {
        let begun = std::time::Instant::now();
        let text = self.ask_conversion(name, database).await?;
        let read = tokio::task::spawn_blocking(move || Multibyte::learned(name, &text)).await;
        let conversion = read.ok().flatten().ok_or_else(|| {
            Failure::new("XX000", format!("could not read how the coordinator converts encoding \"{name}\""))
        })?;
        let size = conversion.size();
        tracing::info!("encoding {name} learned from the coordinator in {:?}, {size} bytes", begun.elapsed());
        Ok(conversion)
    }

    async fn ask_conversion(&self, name: &str, database: &str) -> std::result::Result<String, BackendError> {
        let mut connection = connect(&self.own_target(database)).await?;
        // The database's users may have functions and operators of the same names, and this is not for them to run.
        connection.query("SET statement_timeout = 0; SET search_path = pg_catalog, pg_temp").await?;
        connection.query(&learn(name)).await?;
        let learned = connection.query(LEARNED).await?;
        connection.close().await;
        Ok(learned.text(0, 0).unwrap_or_default().to_owned())
    }
}
