//! A connection to one of the two, with a limit for each statement. Statements go by the simple protocol, so that every
//! value comes as the server prints it.

use super::answer::{Row, Rows};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

/// How long the server may take beyond its `statement_timeout` before it is asked once more, and then given up.
const GRACE: Duration = Duration::from_secs(15);

pub struct Client {
    name: &'static str,
    port: u16,
    setup: String,
    timeout: Duration,
    runtime: Runtime,
    connection: Option<tokio_postgres::Client>,
}

/// What became of a statement.
#[derive(Debug, Clone)]
pub enum Outcome {
    Answered { rows: Rows, ms: f64 },
    TimedOut,
    Failed(String),
}

impl Client {
    /// `name` is for messages.
    pub fn new(name: &'static str, port: u16, schema: &str, timeout_s: u32) -> Result<Client, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("could not start a runtime: {error}"))?;
        let setup = format!("SET search_path = {schema}; SET statement_timeout = '{timeout_s}s'");
        Ok(Client { name, port, setup, timeout: Duration::from_secs(timeout_s.into()), runtime, connection: None })
    }

    pub fn run(&mut self, statement: &str) -> Result<Outcome, String> {
        self.connect()?;
        let Some(connection) = &self.connection else { return Err("not connected".to_owned()) };
        let (limit, cancel) = (self.timeout + GRACE, connection.cancel_token());
        let started = Instant::now();
        let result = self.runtime.block_on(async {
            let answer = connection.simple_query(statement);
            tokio::pin!(answer);
            if let Ok(result) = tokio::time::timeout(limit, &mut answer).await {
                return Some(result);
            }
            // Its own timeout did not end it; whoever waits for such a statement cancels it.
            let _ = cancel.cancel_query(NoTls).await;
            tokio::time::timeout(GRACE, &mut answer).await.ok()
        });
        let ms = started.elapsed().as_secs_f64() * 1e3;
        match result {
            Some(Ok(messages)) => Ok(Outcome::Answered { rows: rows(&messages), ms }),
            Some(Err(error)) if error.code() == Some(&SqlState::QUERY_CANCELED) => Ok(Outcome::TimedOut),
            Some(Err(error)) => {
                if error.is_closed() {
                    self.connection = None;
                }
                Ok(Outcome::Failed(said(&error)))
            }
            None => {
                self.connection = None;
                Ok(Outcome::Failed(format!("neither statement_timeout nor a cancel request ended it in {ms:.0} ms")))
            }
        }
    }

    /// Which columns of a statement's result are floats.
    pub fn floats(&mut self, statement: &str) -> Result<Vec<bool>, String> {
        self.connect()?;
        let Some(connection) = &self.connection else { return Err("not connected".to_owned()) };
        let prepared = self
            .runtime
            .block_on(connection.prepare(statement))
            .map_err(|error| format!("{} does not take a statement: {}", self.name, said(&error)))?;
        Ok(prepared.columns().iter().map(|column| [Type::FLOAT4, Type::FLOAT8].contains(column.type_())).collect())
    }

    fn connect(&mut self) -> Result<(), String> {
        if self.connection.as_ref().is_some_and(|connection| !connection.is_closed()) {
            return Ok(());
        }
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.port).user("postgres").dbname("postgres");
        let connected = self.runtime.block_on(async {
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            client.batch_execute(&self.setup).await?;
            Ok(client)
        });
        let failed = |error: tokio_postgres::Error| format!("could not connect to {}: {}", self.name, said(&error));
        self.connection = Some(connected.map_err(failed)?);
        Ok(())
    }
}

fn rows(messages: &[SimpleQueryMessage]) -> Rows {
    let mut all = Rows::default();
    for message in messages {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                all.columns = columns.iter().map(|column| column.name().to_owned()).collect();
            }
            SimpleQueryMessage::Row(row) => {
                all.rows.push((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect::<Row>());
            }
            _ => {}
        }
    }
    all
}

fn said(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => {
            let detail = error.detail().map_or(String::new(), |detail| format!(" ({detail})"));
            format!("{}: {}{detail}", error.code().code(), error.message())
        }
        None => error.to_string(),
    }
}
