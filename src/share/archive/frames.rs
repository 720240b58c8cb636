//! Zstandard, as a row of frames: each is compressed by itself, in bounded memory.

use std::io::{self, BufRead, BufReader, Read, Write};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Bytes of content in a frame.
const FRAME: usize = 4 << 20;
/// The most that a frame may ask its reader to remember, in bytes.
const WINDOW: u64 = 64 << 20;

/// Compresses what is written, in frames.
pub(super) struct Compressing<W: Write> {
    inner: W,
    pending: Vec<u8>,
}

impl<W: Write> Compressing<W> {
    pub fn new(inner: W) -> Compressing<W> {
        Compressing {
            inner,
            pending: Vec::with_capacity(FRAME),
        }
    }

    fn frame(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let frame = compress_to_vec(self.pending.as_slice(), CompressionLevel::Fastest);
        self.pending.clear();
        self.inner.write_all(&frame)
    }

    /// Writes the last frame.
    pub fn finish(mut self) -> io::Result<W> {
        self.frame()?;
        Ok(self.inner)
    }
}

impl<W: Write> Write for Compressing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(FRAME - self.pending.len());
        self.pending.extend_from_slice(&bytes[..count]);
        if self.pending.len() == FRAME {
            self.frame()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a row of frames.
pub(super) struct Decompressing<R: Read> {
    inner: BufReader<R>,
    frame: FrameDecoder,
}

impl<R: Read> Decompressing<R> {
    pub fn new(inner: R) -> Decompressing<R> {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(WINDOW);
        let inner = BufReader::new(inner);
        Decompressing { inner, frame }
    }

    /// The reader below, of which everything was read.
    pub fn into_inner(self) -> R {
        self.inner.into_inner()
    }
}

impl<R: Read> Read for Decompressing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let damaged = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        loop {
            let count = self.frame.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            if !self.frame.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.frame.decode_blocks(&mut self.inner, one);
                decoded.map_err(damaged)?;
            } else if self.inner.fill_buf()?.is_empty() {
                return Ok(0);
            } else {
                self.frame.reset(&mut self.inner).map_err(damaged)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_in_frames_is_read_again() {
        for size in [0, 1, FRAME - 1, FRAME, FRAME + 1, 2 * FRAME + 17] {
            let bytes: Vec<u8> = (0..size)
                .map(|at| (at % 251) as u8 ^ (at >> 12) as u8)
                .collect();
            let mut writer = Compressing::new(Vec::new());
            writer.write_all(&bytes).unwrap();
            let packed = writer.finish().unwrap();
            let mut reader = Decompressing::new(packed.as_slice());
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            assert!(read == bytes, "{size}");
            assert!(reader.into_inner().is_empty());
            // A row that is cut off within a frame is no shorter row.
            if size > 0 {
                let mut reader = Decompressing::new(&packed[..packed.len() - 1]);
                assert!(reader.read_to_end(&mut Vec::new()).is_err(), "{size}");
            }
        }
    }
}
