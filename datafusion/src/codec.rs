//! Codecs for plans that travel: another codec's, with castwise's functions as their text.
//!
//! Guarantees: everything but castwise's functions is the other codec's. Does not: compile; the process that reads a
//! plan does, once for each program and dtypes.

use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, TableReference};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, Extension, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::proto_decode::PhysicalExprDecodeCtx;
use datafusion::physical_expr_common::physical_expr::proto_encode::PhysicalExprEncodeCtx;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use crate::payload::{decode_aggregate, decode_scalar, encode_aggregate, encode_scalar};

/// A codec of logical plans. [`CastwisePhysicalCodec`] has an example.
#[derive(Debug)]
pub struct CastwiseLogicalCodec(Arc<dyn LogicalExtensionCodec>);

/// A codec of physical plans.
///
/// ```
/// use std::sync::Arc;
/// use castwise_datafusion::CastwisePhysicalCodec;
/// use datafusion_proto::physical_plan::DefaultPhysicalExtensionCodec;
/// // Of a cluster its own codec, such as Ballista's.
/// let codec = CastwisePhysicalCodec::new(Arc::new(DefaultPhysicalExtensionCodec {}));
/// # let _ = codec;
/// ```
#[derive(Debug)]
pub struct CastwisePhysicalCodec(Arc<dyn PhysicalExtensionCodec>);

impl CastwiseLogicalCodec {
    /// A codec that has castwise's functions, and leaves all else to another.
    pub fn new(other: Arc<dyn LogicalExtensionCodec>) -> CastwiseLogicalCodec {
        CastwiseLogicalCodec(other)
    }
}

impl CastwisePhysicalCodec {
    /// A codec that has castwise's functions, and leaves all else to another.
    pub fn new(other: Arc<dyn PhysicalExtensionCodec>) -> CastwisePhysicalCodec {
        CastwisePhysicalCodec(other)
    }
}

/// The methods for functions, which both traits have.
macro_rules! functions {
    () => {
        fn try_decode_udf(&self, name: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
            decode_scalar(name, buf).map_or_else(|| self.0.try_decode_udf(name, buf), |found| found.map(Arc::new))
        }

        fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> Result<()> {
            match encode_scalar(node) {
                Some(bytes) => buf.extend(bytes),
                None => self.0.try_encode_udf(node, buf)?,
            }
            Ok(())
        }

        fn try_decode_udaf(&self, name: &str, buf: &[u8]) -> Result<Arc<AggregateUDF>> {
            decode_aggregate(name, buf).map_or_else(|| self.0.try_decode_udaf(name, buf), |found| found.map(Arc::new))
        }

        fn try_encode_udaf(&self, node: &AggregateUDF, buf: &mut Vec<u8>) -> Result<()> {
            match encode_aggregate(node) {
                Some(bytes) => buf.extend(bytes),
                None => self.0.try_encode_udaf(node, buf)?,
            }
            Ok(())
        }

        fn try_decode_udwf(&self, name: &str, buf: &[u8]) -> Result<Arc<WindowUDF>> {
            self.0.try_decode_udwf(name, buf)
        }

        fn try_encode_udwf(&self, node: &WindowUDF, buf: &mut Vec<u8>) -> Result<()> {
            self.0.try_encode_udwf(node, buf)
        }

        fn try_decode_higher_order_function(&self, name: &str, buf: &[u8]) -> Result<Arc<HigherOrderUDF>> {
            self.0.try_decode_higher_order_function(name, buf)
        }

        fn try_encode_higher_order_function(&self, node: &HigherOrderUDF, buf: &mut Vec<u8>) -> Result<()> {
            self.0.try_encode_higher_order_function(node, buf)
        }
    };
}

impl LogicalExtensionCodec for CastwiseLogicalCodec {
    functions!();

    fn try_decode(&self, buf: &[u8], inputs: &[LogicalPlan], ctx: &TaskContext) -> Result<Extension> {
        self.0.try_decode(buf, inputs, ctx)
    }

    fn try_encode(&self, node: &Extension, buf: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode(node, buf)
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        table: &TableReference,
        schema: SchemaRef,
        ctx: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        self.0.try_decode_table_provider(buf, table, schema, ctx)
    }

    fn try_encode_table_provider(
        &self,
        table: &TableReference,
        node: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        self.0.try_encode_table_provider(table, node, buf)
    }

    fn try_decode_file_format(&self, buf: &[u8], ctx: &TaskContext) -> Result<Arc<dyn FileFormatFactory>> {
        self.0.try_decode_file_format(buf, ctx)
    }

    fn try_encode_file_format(&self, buf: &mut Vec<u8>, node: Arc<dyn FileFormatFactory>) -> Result<()> {
        self.0.try_encode_file_format(buf, node)
    }
}

impl PhysicalExtensionCodec for CastwisePhysicalCodec {
    functions!();

    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.try_decode(buf, inputs, ctx, converter)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        self.0.try_encode(node, buf, converter)
    }

    fn try_decode_expr(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn PhysicalExpr>],
        ctx: &PhysicalExprDecodeCtx<'_>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        self.0.try_decode_expr(buf, inputs, ctx)
    }

    fn try_encode_expr(
        &self,
        node: &Arc<dyn PhysicalExpr>,
        buf: &mut Vec<u8>,
        ctx: &PhysicalExprEncodeCtx<'_>,
    ) -> Result<()> {
        self.0.try_encode_expr(node, buf, ctx)
    }
}
