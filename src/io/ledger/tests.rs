//! Files with tensors that were not written.

use super::*;
use crate::base::dtype::DType;

#[test]
fn a_tensor_that_was_not_written_spoils_the_file() {
    let path = Path::new("x");
    let mut ledger = Ledger::default();
    for name in ["a", "b"] {
        ledger.add(path, name, DType::F32, &[], 7).unwrap();
    }
    assert_eq!(ledger.take(path, "a", DType::F32, &[]).unwrap(), 7);
    ledger.written();
    assert!(ledger.complete(path).unwrap_err().to_string().contains("1 listed"));
    ledger.take(path, "b", DType::F32, &[]).unwrap();
    // `written` is not called, as if the disk were full.
    assert!(!ledger.is_complete() && ledger.complete(path).is_err());
    assert!(ledger.take(path, "b", DType::F32, &[]).unwrap_err().to_string().contains("could not be written"));
    ledger.written();
    assert!(ledger.is_complete() && ledger.complete(path).is_ok());
}
