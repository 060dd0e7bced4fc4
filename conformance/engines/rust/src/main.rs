// SPDX-License-Identifier: Apache-2.0
//! The engine's side of a driver: iceberg-rust, asked by lines of JSON on standard input, each a verb and its arguments.
//! Answers each with a line: `told`, or the `error` in the client's own words. What is asked, and which rows, is not known here.

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_json::writer::LineDelimited;
use arrow_json::{ReaderBuilder, WriterBuilder};
use futures::TryStreamExt;
use iceberg::arrow::{RecordBatchPartitionSplitter, schema_to_arrow_schema};
use iceberg::io::LocalFsStorageFactory;
use iceberg::spec::{
    DataFile, DataFileFormat, PartitionSpec, PrimitiveType, Schema, Transform, Type,
};
use iceberg::table::Table;
use iceberg::transaction::{AddColumn, ApplyTransactionAction, Transaction};
use iceberg::writer::base_writer::data_file_writer::DataFileWriterBuilder;
use iceberg::writer::file_writer::ParquetWriterBuilder;
use iceberg::writer::file_writer::location_generator::{
    DefaultFileNameGenerator, DefaultLocationGenerator,
};
use iceberg::writer::file_writer::rolling_writer::RollingFileWriterBuilder;
use iceberg::writer::partitioning::PartitioningWriter;
use iceberg::writer::partitioning::fanout_writer::FanoutWriter;
use iceberg::writer::{IcebergWriter, IcebergWriterBuilder};
use iceberg::{Catalog, CatalogBuilder, NamespaceIdent, TableCreation, TableIdent};
use iceberg_catalog_rest::{RestCatalog, RestCatalogBuilder};
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

type Told = Result<Value, Box<dyn Error>>;

#[tokio::main]
async fn main() {
    let mut lake = None;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let answer = match answer(&mut lake, &line).await {
            Ok(told) => json!({ "told": told }),
            Err(error) => json!({ "error": format!("{error:?} {error}") }),
        };
        println!("{answer}");
        let _ = std::io::stdout().flush();
    }
}

async fn answer(lake: &mut Option<RestCatalog>, line: &str) -> Told {
    let asked: Value = serde_json::from_str(line)?;
    let verb = asked[0].as_str().ok_or("no verb")?;
    let given = &asked[1][0];
    if verb == "open" {
        let properties: HashMap<String, String> =
            serde_json::from_value(given["properties"].clone())?;
        let builder =
            RestCatalogBuilder::default().with_storage_factory(Arc::new(LocalFsStorageFactory));
        *lake = Some(builder.load("lake", properties).await?);
        return Ok(Value::Null);
    }
    done(lake.as_ref().ok_or("no catalog is open")?, verb, given).await
}

async fn done(lake: &RestCatalog, verb: &str, given: &Value) -> Told {
    let space = NamespaceIdent::from_strs(texts(&given["levels"]))?;
    let named = |key: &str| {
        TableIdent::new(
            space.clone(),
            given[key].as_str().unwrap_or_default().to_string(),
        )
    };
    match verb {
        "namespace" => {
            lake.create_namespace(&space, HashMap::new()).await?;
        }
        "create" => create(lake, &space, given).await?,
        "rename" => lake.rename_table(&named("name"), &named("new")).await?,
        "drop" => lake.drop_table(&named("name")).await?,
        "append" => append(lake, lake.load_table(&named("name")).await?, &given["rows"]).await?,
        "read" => return read(lake.load_table(&named("name")).await?, given).await,
        "add_column" | "drop_column" => {
            let change = Transaction::new(&lake.load_table(&named("name")).await?);
            let columns = change.update_schema();
            let columns = match verb {
                "add_column" => {
                    columns.add_column(AddColumn::optional("size", Type::Primitive(PrimitiveType::Int)))
                }
                _ => columns.delete_column("city"),
            };
            columns.apply(change)?.commit(lake).await?;
        }
        _ => return Err(format!("no verb {verb}").into()),
    }
    Ok(Value::Null)
}

fn texts(value: &Value) -> Vec<String> {
    let each = value.as_array().into_iter().flatten();
    each.filter_map(|text| text.as_str().map(str::to_string))
        .collect()
}

async fn create(
    lake: &RestCatalog,
    space: &NamespaceIdent,
    given: &Value,
) -> Result<(), Box<dyn Error>> {
    let schema: Schema = serde_json::from_value(given["schema"].clone())?;
    let spec = match given["day"].as_str() {
        Some(day) => Some(
            PartitionSpec::builder(schema.clone())
                .add_partition_field(day, format!("{day}_day"), Transform::Day)?
                .build()?
                .into_unbound(),
        ),
        None => None,
    };
    let creation = TableCreation::builder()
        .name(given["name"].as_str().unwrap_or_default().to_string())
        .schema(schema)
        .partition_spec_opt(spec)
        .build();
    lake.create_table(space, creation).await?;
    Ok(())
}

async fn append(lake: &RestCatalog, to: Table, rows: &Value) -> Result<(), Box<dyn Error>> {
    let schema = Arc::new(schema_to_arrow_schema(to.metadata().current_schema())?);
    let mut decoder = ReaderBuilder::new(schema).build_decoder()?;
    for row in rows.as_array().into_iter().flatten() {
        decoder.decode(row.to_string().as_bytes())?;
    }
    let batch = decoder.flush()?.ok_or("no rows")?;
    let files = written(&to, batch).await?;
    let change = Transaction::new(&to);
    let append = change.fast_append().add_data_files(files);
    append.apply(change)?.commit(lake).await?;
    Ok(())
}

async fn written(to: &Table, batch: RecordBatch) -> Result<Vec<DataFile>, Box<dyn Error>> {
    let metadata = to.metadata();
    let schema = metadata.current_schema().clone();
    let snapshots = metadata.snapshots().len();
    let rolling = RollingFileWriterBuilder::new_with_default_file_size(
        ParquetWriterBuilder::new(WriterProperties::default(), schema.clone()),
        to.file_io().clone(),
        DefaultLocationGenerator::new(metadata)?,
        DefaultFileNameGenerator::new(format!("part-{snapshots}"), None, DataFileFormat::Parquet),
    );
    let builder = DataFileWriterBuilder::new(rolling);
    let spec = metadata.default_partition_spec().clone();
    if spec.is_unpartitioned() {
        let mut writer = builder.build(None).await?;
        writer.write(batch).await?;
        return Ok(writer.close().await?);
    }
    let splitter = RecordBatchPartitionSplitter::try_new_with_computed_values(schema, spec)?;
    let mut writer = FanoutWriter::new(builder);
    for (partition, part) in splitter.split(&batch)? {
        writer.write(partition, part).await?;
    }
    Ok(writer.close().await?)
}

async fn read(from: Table, given: &Value) -> Told {
    let mut scan = from.scan().select(texts(&given["columns"]));
    if let Some(snapshot) = given["snapshot"].as_i64() {
        scan = scan.snapshot_id(snapshot);
    }
    let batches: Vec<RecordBatch> = scan.build()?.to_arrow().await?.try_collect().await?;
    let mut text = Vec::new();
    let mut writer = WriterBuilder::new()
        .with_explicit_nulls(true)
        .build::<_, LineDelimited>(&mut text);
    writer.write_batches(&batches.iter().collect::<Vec<_>>())?;
    writer.finish()?;
    drop(writer);
    let rows: Result<Vec<Value>, _> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(serde_json::from_slice)
        .collect();
    Ok(Value::Array(rows?))
}
